"""Tests disassembly.py on a kernel in the form of nvdisasm's."""

import disassembly

# Two loops, the inner one with products and a wait whose retry stands behind the end of the kernel.
KERNEL = """
\t.section\t.text.other,"ax",@progbits
        /*0000*/                   STL [R1], R2 ;
        /*0010*/                   EXIT ;
\t.section\t.text.forward,"ax",@progbits
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_outer:
        /*0010*/                   {BETWEEN} ;
        /*0020*/              @!P0 BRA `(.L_end) ;
.L_inner:
        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0040*/              @!P0 BRA `(.L_retry) ;
.L_go_on:
        /*0050*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], RZ, !UPT ;
        /*0060*/                   BSSY B0, `(.L_joined) ;
        /*0070*/              @P1 BRA `(.L_rare) ;
        /*0080*/                   BSYNC B0 ;
.L_rare:
        /*0090*/                   {RARE} ;
        /*00a0*/                   BSYNC B0 ;
.L_joined:
        /*00b0*/               @P2 BRA `(.L_inner) ;
        /*00c0*/                   {AFTER} ;
        /*00d0*/                   BRA `(.L_outer) ;
.L_end:
        /*00e0*/                   EXIT ;
.L_retry:
        /*00f0*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2 ;
        /*0100*/              @!P0 BRA `(.L_retry) ;
        /*0110*/                   BRA `(.L_go_on) ;
"""


def count(**places):
    text = KERNEL
    for place in ("BETWEEN", "RARE", "AFTER"):
        text = text.replace("{" + place + "}", places.get(place, "NOP"))
    return disassembly.count_local_accesses_in_key_loops(text)


def main():
    assert count() == {"forward": 0}, count()
    assert count(BETWEEN="LDL R2, [R1]", AFTER="@P1 STL [R1], R2") == {"forward": 0}
    assert count(RARE="LDL.64 R2, [R1]") == {"forward": 1}
    synchronous = KERNEL.replace("HGMMA.64x128x16.F32", "HMMA.16816.F32").replace("{RARE}", "STL [R1], R2")
    assert disassembly.count_local_accesses_in_key_loops(synchronous) == {"forward": 1}
    starts, ends, edges = disassembly.blocks(disassembly.successors(*disassembly.kernels(KERNEL)["forward"]))
    # The retry, the inner and the outer loop.
    assert len(disassembly.loops(edges)) == 3
    print("passed")


if __name__ == "__main__":
    main()
