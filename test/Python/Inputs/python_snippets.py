"""Writes the Python of a page's fenced blocks, in order, as one program.

usage: python_snippets.py PAGE OUTPUT [--torch]

Blocks that start with the comment `# torch` are for machines with PyTorch, and are left out without
--torch.
"""

import re
import sys

page, output = sys.argv[1:3]
with open(page, encoding="utf-8") as file:
    text = file.read()
blocks, lines = [], 0
for match in re.finditer(r"^```python\n(.*?)^```$", text, re.S | re.M):
    if match.group(1).startswith("# torch") and "--torch" not in sys.argv:
        continue
    # Lines of tracebacks are those of the page.
    start = text.count("\n", 0, match.start()) + 1
    blocks.append("\n" * (start - lines) + match.group(1))
    lines = start + match.group(1).count("\n")
if not blocks:
    sys.exit(f"{page} has no Python to run")
with open(output, "w", encoding="utf-8") as file:
    file.write("".join(blocks))
