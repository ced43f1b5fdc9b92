"""Where a kernel touches local memory, from the text of `nvdisasm -c`."""

import re

PRODUCT = re.compile(r"\bHG?MMA\b")
LOCAL = re.compile(r"\b(?:LDL|STL)\b")
SECTION = re.compile(r"\s*\.section\s+\.text\.([^,]+),")
LABEL = re.compile(r"\s*(\.L_\w+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
TARGET = re.compile(r"(\.L_\w+)")


def kernels(text):
    """{name: (instructions, {label: index})}."""
    found, code, labels = {}, [], {}
    for line in text.splitlines():
        if section := SECTION.match(line):
            code, labels = [], {}
            found[section[1]] = (code, labels)
        elif label := LABEL.match(line):
            labels[label[1]] = len(code)
        elif instruction := INSTRUCTION.search(line):
            code.append(instruction[1])
    return found


def successors(code, labels):
    """By instruction, where it may go on."""
    following, joins = [], {}
    for index, instruction in enumerate(code):
        words = re.sub(r"^@!?U?P\w+ ", "", instruction).split()
        operation, is_conditional = words[0].split(".")[0], instruction.startswith("@")
        target = TARGET.search(instruction)
        place = labels.get(target[1]) if target else None
        targets = set()
        if operation == "BSSY":
            joins[words[1].rstrip(",")] = place
        if operation == "BRA" and place is not None:
            targets.add(place)
        elif operation == "BSYNC" and joins.get(words[1]) is not None:
            targets.add(joins[words[1]])
        if (operation not in ("BRA", "EXIT", "RET", "BSYNC") or is_conditional) and index + 1 < len(code):
            targets.add(index + 1)
        following.append({place for place in targets if place < len(code)})
    return following


def blocks(following):
    """(first instruction of each block, {block: blocks that follow})."""
    starts = {0} | {place for index, places in enumerate(following) for place in places if places != {index + 1}}
    starts |= {index + 1 for index, places in enumerate(following) if places != {index + 1}}
    starts = sorted(start for start in starts if start < len(following))
    block_of = {start: number for number, start in enumerate(starts)}
    ends = starts[1:] + [len(following)]
    return starts, ends, [sorted(block_of[place] for place in following[end - 1]) for end in ends]


def loops(edges):
    """The natural loops, sets of blocks: for each edge back to a block through which all ways lead."""
    order, seen, stack = [], set(), [(0, iter(edges[0]))]
    seen.add(0)
    while stack:
        block, rest = stack[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                stack.append((following, iter(edges[following])))
                break
        else:
            order.append(block)
            stack.pop()
    order.reverse()
    before = {block: [] for block in order}
    for block in order:
        for following in edges[block]:
            before[following].append(block)
    position = {block: number for number, block in enumerate(order)}
    # Immediate dominators (Cooper, Harvey and Kennedy, A simple, fast dominance algorithm).
    dominator = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [b for b in before[block] if b in dominator]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    while position[new] > position[other]:
                        new = dominator[new]
                    while position[other] > position[new]:
                        other = dominator[other]
            changed |= dominator.get(block) != new
            dominator[block] = new

    def dominates(a, b):
        while position[b] > position[a]:
            b = dominator[b]
        return a == b

    found = {}
    for block in order:
        for head in edges[block]:
            if dominates(head, block):
                body, work = found.setdefault(head, {head}), [block]
                while work:
                    inner = work.pop()
                    if inner not in body:
                        body.add(inner)
                        work.extend(before[inner])
    return list(found.values())


def count_local_accesses_in_key_loops(text):
    """{kernel: accesses to local memory in its innermost loops with products of matrices}, of kernels
    that have such loops."""
    counts = {}
    for name, (code, labels) in kernels(text).items():
        if not any(map(PRODUCT.search, code)):
            continue
        starts, ends, edges = blocks(successors(code, labels))

        def contains(loop, pattern):
            return sum(bool(pattern.search(code[i])) for block in loop for i in range(starts[block], ends[block]))

        with_products = [loop for loop in loops(edges) if contains(loop, PRODUCT)]
        innermost = [loop for loop in with_products if not any(other < loop for other in with_products)]
        if innermost:
            counts[name] = sum(contains(loop, LOCAL) for loop in innermost)
    return counts
