"""Prints attention with as many biases as the first argument says, of the type of the second."""

import sys

bias = f"tensor<?x?x?x?x{sys.argv[2]}>"
names = [f"%b{n}" for n in range(int(sys.argv[1]))]
arguments = "".join(f", {name}: {bias}" for name in names)
q, s = "tensor<?x4x?x64xf16>", "tensor<?x4x?x?xf32>"
print(f"func.func @f(%q: {q}{arguments}) -> {q} {{")
print(f"  %s = attnfuse.scaled_dot_product %q, %q : {q}, {q} -> {s}")
last = "%s"
for n, name in enumerate(names):
    print(f"  %s{n} = attnfuse.additive_bias {last}, {name} : {s}, {bias}")
    last = f"%s{n}"
print(f"  %p = attnfuse.softmax {last} : {s}")
print(f"  %o = attnfuse.weighted_sum %p, %q : {s}, {q} -> {q}")
print(f"  return %o : {q}\n}}")
