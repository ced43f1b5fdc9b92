"""Runs the CUDA path on tensors of the CPU and the unit tests' fake driver, in a process of its own,
with that driver as libcuda.so.1 in LD_LIBRARY_PATH. What it is asked for is read from the calls of the
C interface."""

import functools

import torch

import attnfuse as af
import torch_reference
import variants
from attnfuse import torch_launch


def refuse_calls(*_):
    raise AssertionError("the CUDA path is not taken")


torch_launch._CpuLaunch = torch_launch._CudaLaunch
torch_launch._device_index = lambda device: 0
torch_launch._get_stream = lambda index: 0
torch_launch.cache.cpu_function = refuse_calls

causal = af.attention(variants.causal_with_lse)
shifted = af.attention(variants.shifted)
tensors = functools.partial(
    torch_reference.tensors, b=1, nq=16, nkv=24, d=64, dtype=torch.bfloat16
)

# Every launch, with what the C interface is given.
calls = []
real_launch, real_run = torch_launch._launch_kernel, torch_launch._run_launch


def spy_launch(handle, stream, arguments, num_arguments, results, num_results):
    values = [*arguments, *results]
    calls.append(
        ("launch", [value.data for value in values], [list(v.strides[: v.rank]) for v in values])
    )
    return real_launch(handle, stream, arguments, num_arguments, results, num_results)


def spy_run(handle, stream, addresses, workspace):
    calls.append(("run", list(addresses)))
    return real_run(handle, stream, addresses, workspace)


torch_launch._launch_kernel, torch_launch._run_launch = spy_launch, spy_run


def addresses(*values):
    return [value.data_ptr() for value in values]


# The first calls launch, later ones of the same sizes only say where the tensors are.
for _ in range(torch_launch._CALLS_UNTIL_FAST):
    q, k, v = tensors()
    output, lse = causal(q, k, v)
    assert output.shape == q.shape and lse.shape == (1, 4, 16) and lse.dtype == torch.float32
    assert calls[-1][:2] == ("launch", addresses(q, k, v, output, lse))
for _ in range(3):
    q, k, v = tensors()
    output, lse = causal(q, k, v)
    assert calls[-1] == ("run", addresses(q, k, v, output, lse))
q, k, v = tensors(nq=17)
output, lse = causal(q, k, v)
assert calls[-1][:2] == ("launch", addresses(q, k, v, output, lse))

# Strides are kept where the kernel takes them, and so is the layout of q.
stored = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors()]
output, lse = causal(*stored)
kind, places, strides = calls[-1]
assert places == addresses(*stored, output, lse)
assert (
    strides[:4] == [list(x.stride()) for x in (*stored, output)]
    and output.stride() == stored[0].stride()
)

# Others are copied, whether strides or the address are in the way.
q, k, v = tensors()
wide = torch.zeros(1, 2, 24, 128, dtype=torch.bfloat16)
for _ in range(2):
    causal(q, wide[..., ::2], v)
    kind, places, strides = calls[-1]
    assert (
        places[0] == q.data_ptr()
        and places[1] != wide.data_ptr()
        and strides[1] == list(k.stride())
    )
shifted_memory = torch.zeros(k.numel() + 1, dtype=torch.bfloat16)
odd = shifted_memory[1:].view(k.shape)
assert odd.data_ptr() % 16 and odd.stride() == k.stride()
causal(q, k, v)
for _ in range(2):
    output, lse = causal(q, odd, v)
    kind, places, strides = calls[-1]
    assert kind == "launch" and places[0] == q.data_ptr() and places[1] % 16 == 0
    output, lse = causal(q, k, v)
    assert calls[-1] == ("run", addresses(q, k, v, output, lse))

# Numbers of the call are passed on each time.
cos, sin = af.build_rope_cache(64, 64, like=q)
for offset in (0, 9, 40):
    shifted(q, k, v, cos, sin, offset)
    assert calls[-1][0] == "launch"
try:
    shifted(q, k, v, cos, sin, 60)
except af.OperandError as error:
    assert "'cos' is too short: expected at least 76 rows" in str(error)
else:
    raise AssertionError("positions beyond the tables are refused")

# What a GPU does not take is refused by name.
try:
    causal(*(x.float() for x in tensors()))
except af.OperandError as error:
    assert "argument 'q': expected f16 or bf16 for a GPU, got f32" in str(error)
else:
    raise AssertionError("f32 is refused")
print(f"{len(calls)} launches seen")
