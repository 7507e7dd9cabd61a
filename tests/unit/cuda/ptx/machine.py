# SPDX-License-Identifier: MIT
"""A block of threads that executes PTX, one instruction of a warp at a time.

A lane has its own place in the kernel. Of those that a warp's lanes are at, the earliest in the text goes on, so lanes
that parted meet again where their ways do. Instructions of a whole warp want all 32 lanes there. The warps of a block
run one after the other, each until its next barrier; blocks run one after the other. So this shows what an instruction
means and which lane holds what, and nothing of order: a missing barrier or fence goes unseen, and time does not exist.

What the hardware would not do is a Fault: reads of what was never written, of memory that is not there or not aligned,
warp instructions that lanes miss, barriers that threads miss.
"""

import math

from fragments import LANES, PRODUCTS
from operations import OPERATIONS, width_of
from source import Unknown, split_operands
from values import bits_of, float_of, signed

EVERY = list(range(LANES))
SHARED_BASE, PARAMETER_BASE = 0x400, 0x1000
MOST_STEPS = 10_000_000


class Fault(Exception):
    pass


class Memory:
    def __init__(self, name):
        self.name, self.regions = name, []

    def add(self, address, content):
        self.regions.append((address, content))

    def place(self, address, size):
        if address % size:
            raise Fault(f"{size} bytes of {self.name} memory at {address:#x}, which is not aligned")
        for base, content in self.regions:
            if base <= address and address + size <= base + len(content):
                return content, address - base
        raise Fault(f"{size} bytes of {self.name} memory at {address:#x}: nothing is there")

    def read(self, address, size, n):
        content, at = self.place(address, size * n)
        return [int.from_bytes(content[at + i * size:at + (i + 1) * size], "little") for i in range(n)]

    def write(self, address, size, values):
        content, at = self.place(address, size * len(values))
        for i, value in enumerate(values):
            content[at + i * size:at + (i + 1) * size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")


class Warp:
    def __init__(self, block, index):
        self.block, self.registers = block, {}
        threads = [index * LANES + lane for lane in EVERY]
        x, y, z = block.size
        self.registers.update({
            "%tid.x": [t % x for t in threads], "%tid.y": [t // x % y for t in threads],
            "%tid.z": [t // x // y for t in threads], "%laneid": EVERY})
        for name, numbers in (("%ntid", block.size), ("%ctaid", block.index), ("%nctaid", block.grid)):
            for axis, number in zip("xyz", numbers):
                self.registers[f"{name}.{axis}"] = [number] * LANES

    def target(self, name):
        if name not in self.registers:
            self.registers[name] = [None] * LANES
        return self.registers[name]

    def set(self, name, lanes, values):
        """values: [32], of which those of `lanes` count"""
        if name == "_":
            return
        if len(lanes) == LANES:
            self.registers[name] = list(values)
        else:
            target = self.target(name)
            for lane in lanes:
                target[lane] = values[lane]


class Block:
    def __init__(self, machine, index, grid, size, shared_bytes):
        self.index, self.grid, self.size = index, grid, size
        self.shared, at = Memory("shared"), SHARED_BASE
        self.symbols = {}
        for name, n in machine.kernel.shared.items():
            self.symbols[name] = at
            self.shared.add(at, bytearray(b"\xa5" * (n or shared_bytes)))
            at += (n or shared_bytes) + 255 & ~255


class Machine:
    """One kernel with its memory; `ran` gets the opcodes that were executed."""

    def __init__(self, kernel, products=None):
        self.kernel, self.products = kernel, products or PRODUCTS
        self.memory, self.ran = Memory("global"), set()
        self.steps = [None] * len(kernel.instructions)  # compiled when they are first reached
        self.symbols, self.parameters, self.block = {}, Memory("parameter"), None

    def launch(self, grid, size, shared_bytes, parameters):
        """parameters: the bytes of each argument"""
        if [len(p) for p in parameters] != [n for _, n in self.kernel.parameters]:
            raise Fault(f"{self.kernel.name} takes {[n for _, n in self.kernel.parameters]} bytes of parameters, and "
                        f"{[len(p) for p in parameters]} were given")
        if math.prod(size) % LANES:
            raise Fault("a block is to be of whole warps")
        at = PARAMETER_BASE
        for (symbol, n), content in zip(self.kernel.parameters, parameters):
            self.symbols[symbol] = at
            self.parameters.add(at, bytearray(content))
            at += n + 255 & ~255
        for index in ((x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])):
            self._run_block(Block(self, index, grid, size, shared_bytes))

    def _run_block(self, block):
        self.block = block
        if block.symbols.keys() & self.symbols.keys():
            raise Unknown("a shared variable with a parameter's name")
        self.steps = [None] * len(self.kernel.instructions)
        running = [self._run_warp(Warp(block, i)) for i in range(math.prod(block.size) // LANES)]
        while running:
            waiting = [warp for warp in running if next(warp, "end") != "end"]
            if waiting and len(waiting) != len(running):
                raise Fault(f"{self.kernel.name}: a barrier that {len(running) - len(waiting)} warps never reach")
            running = waiting

    def _run_warp(self, warp):
        """A generator, which stops at each barrier of the block."""
        instructions, n_alive, n_steps = self.kernel.instructions, LANES, 0
        at_places = {0: EVERY}
        while at_places:
            at = min(at_places)
            lanes = at_places.pop(at)
            step = instructions[at]
            n_steps += 1
            if n_steps > MOST_STEPS:
                raise Fault(f"{self.kernel.name}: more than {MOST_STEPS} instructions of a warp")
            chosen = lanes
            if step.guard:
                guard = warp.target(step.guard)
                if any(guard[lane] is None for lane in lanes):
                    raise Fault(f"{step.text}: {step.guard} was never written")
                chosen = [lane for lane in lanes if bool(guard[lane]) != step.negated]
            others = lanes if not chosen else [lane for lane in lanes if lane not in chosen] if step.guard else []
            opcode = step.opcode
            if chosen:
                self.ran.add(opcode)
            if opcode in ("bra", "bra.uni"):
                self._join(at_places, self.kernel.labels[step.operands[0]], chosen)
                self._join(at_places, at + 1, others)
                continue
            if opcode in ("ret", "exit"):
                n_alive -= len(chosen)
                self._join(at_places, at + 1, others)
                continue
            if chosen:
                if opcode in ("bar.sync", "barrier.sync"):
                    if step.operands != ["0"]:
                        raise Unknown(f"barrier {step.text}")
                    if len(chosen) != n_alive or n_alive != LANES:
                        raise Fault(f"{step.text}: {len(chosen)} of {LANES} lanes are there")
                    yield
                else:
                    self._execute(warp, at, chosen)
            self._join(at_places, at + 1, lanes)

    @staticmethod
    def _join(at_places, at, lanes):
        if lanes:
            at_places[at] = sorted(at_places[at] + lanes) if at in at_places else lanes

    def _execute(self, warp, at, lanes):
        instruction = self.kernel.instructions[at]
        if self.steps[at] is None:
            self.steps[at] = self._compile(instruction)
        try:
            self.steps[at](warp, lanes)
        except KeyError as unwritten:
            raise Fault(f"{instruction.text}: {unwritten} was never written") from None
        except TypeError:
            raise Fault(f"{instruction.text}: a register of it was never written") from None
        except Fault as fault:
            raise Fault(f"{instruction.text}: {fault}") from None

    # ---- operands ----

    def _source(self, operand, width=64):
        """A function of the warp: the operand's bits in each lane."""
        symbols = {**self.symbols, **self.block.symbols}
        if operand in symbols:
            return lambda warp, values=[symbols[operand]] * LANES: values
        if operand[:2] in ("0f", "0F") and len(operand) == 10 or operand[:2] in ("0d", "0D") and len(operand) == 18:
            return lambda warp, values=[int(operand[2:], 16)] * LANES: values
        if operand.lstrip("-")[:1].isdigit():
            value = int(operand.rstrip("U"), 0) & (1 << width) - 1
            return lambda warp, values=[value] * LANES: values
        if operand.startswith("%") or "#" in operand:
            return lambda warp: warp.registers[operand]
        raise Unknown(f"operand {operand}")

    def _address(self, operand):
        """Of [register], [register + n], [symbol + n]."""
        base, _, offset = operand.strip("[]").partition("+")
        source, more = self._source(base.strip()), int(offset or "0", 0)
        return lambda warp: [None if a is None else a + more for a in source(warp)]

    @staticmethod
    def _elements(operand):
        return split_operands(operand[1:-1]) if operand.startswith("{") else [operand]

    def _register_width(self, name):
        widths = self.kernel.widths
        return widths.get(name) or widths.get(name.rstrip("0123456789"), 64)

    # ---- instructions ----

    def _compile(self, instruction):
        opcode, operands = instruction.opcode, instruction.operands
        parts = opcode.split(".")
        width = width_of(parts[-1]) or 64
        if opcode in OPERATIONS:
            return self._compute(OPERATIONS[opcode], operands, width)
        if opcode in self.products:
            return self._multiply(self.products[opcode], operands)
        if parts[0] == "mov":
            return self._move(operands, width)
        if parts[0] in ("ld", "st"):
            return self._access(opcode, parts, operands)
        if parts[0] in ("atom", "red") and parts[1] == "global":
            return self._atomic(opcode, parts, operands)
        if opcode in ("shfl.sync.idx.b32", "shfl.sync.bfly.b32"):
            return self._shuffle(parts[2], operands)
        if opcode == "vote.sync.ballot.b32":
            return self._ballot(operands)
        if opcode == "bar.warp.sync":
            return lambda warp, lanes: self._want_all(lanes)
        if opcode == "prefetch.global.L2":
            address = self._address(operands[0])
            return lambda warp, lanes: [self.memory.place(address(warp)[lane], 1) for lane in lanes] and None
        if opcode in ("membar.gl", "membar.sys", "fence.acq_rel.gpu", "fence.acq_rel.sys", "griddepcontrol.wait",
                      "griddepcontrol.launch_dependents"):
            return lambda warp, lanes: None  # nothing runs beside this block
        raise Unknown(f"opcode {opcode}")

    @staticmethod
    def _want_all(lanes):
        if len(lanes) != LANES:
            raise Fault(f"{len(lanes)} of {LANES} lanes are there")

    def _compute(self, operation, operands, width):
        target, sources = operands[0], [self._source(operand, width) for operand in operands[1:]]

        def run(warp, lanes):
            values = [source(warp) for source in sources]
            if len(lanes) == LANES:
                warp.registers[target] = list(map(operation, *values))
            else:
                out = warp.target(target)
                for lane in lanes:
                    out[lane] = operation(*[value[lane] for value in values])
        return run

    def _move(self, operands, width):
        """Between registers, and between a register and the parts that it is made of, the lowest first."""
        to, of = self._elements(operands[0]), self._elements(operands[1])
        sources = [self._source(operand, width) for operand in of]

        def run(warp, lanes):
            values = [source(warp) for source in sources]
            each = width // len(of)
            whole = values[0] if len(of) == 1 else [
                sum(value[lane] << each * i for i, value in enumerate(values)) if lane in lanes else None
                for lane in EVERY]
            if len(to) == 1:
                warp.set(to[0], lanes, whole)
                return
            each = width // len(to)
            for i, name in enumerate(to):
                warp.set(name, lanes, [whole[lane] >> each * i & (1 << each) - 1 if lane in lanes else None
                                       for lane in EVERY])
        return run

    def _access(self, opcode, parts, operands):
        """ld and st; of caches nothing is known here."""
        n, kind, space = 1, parts[-1], ""
        for part in parts[1:-1]:
            if part in ("v2", "v4"):
                n = int(part[1:])
            elif part in ("global", "shared", "param"):
                space = part
            elif part not in ("nc", "cg", "volatile", "L1::no_allocate"):
                raise Unknown(f"opcode {opcode}")
        if not space or not width_of(kind):
            raise Unknown(f"opcode {opcode}")
        size = width_of(kind) // 8
        loads = parts[0] == "ld"
        names = self._elements(operands[0] if loads else operands[1])
        address = self._address(operands[1] if loads else operands[0])
        sources = [] if loads else [self._source(name, 8 * size) for name in names]

        def memory():
            return {"global": self.memory, "shared": self.block.shared, "param": self.parameters}[space]

        def load(warp, lanes):
            places, targets = address(warp), [warp.target(name) for name in names]
            masks = [(1 << self._register_width(name)) - 1 for name in names]
            for lane in lanes:
                for target, mask, value in zip(targets, masks, memory().read(places[lane], size, n)):
                    target[lane] = (signed(value, 8 * size) if kind[0] == "s" else value) & mask

        def store(warp, lanes):
            places, values = address(warp), [source(warp) for source in sources]
            for lane in lanes:
                memory().write(places[lane], size, [value[lane] for value in values])
        return load if loads else store

    def _atomic(self, opcode, parts, operands):
        """Lanes take their turns in order."""
        operation, kind = parts[-2], parts[-1]
        width = width_of(kind)
        changes = {"add": lambda old, new: old + new & (1 << width) - 1, "max": max, "and": lambda old, new: old & new}
        if operation not in changes or kind[0] == "s" or kind[0] == "f" and (operation, width) != ("add", 32):
            raise Unknown(f"opcode {opcode}")
        change = changes[operation]
        if kind == "f32":
            def change(old, new):
                return bits_of(float_of(old) + float_of(new))
        target = operands[0] if parts[0] == "atom" else "_"
        place, value = operands[-2:]
        address, source, size = self._address(place), self._source(value, width), width // 8

        def run(warp, lanes):
            places, values, before = address(warp), source(warp), [None] * LANES
            for lane in lanes:
                before[lane], = self.memory.read(places[lane], size, 1)
                self.memory.write(places[lane], size, [change(before[lane], values[lane])])
            warp.set(target, lanes, before)
        return run

    def _shuffle(self, mode, operands):
        """PTX ISA 9.0, 9.7.9.6: c has the mask of segments, and the last lane of each."""
        target, _, valid = operands[0].partition("|")
        value, operand, clamp, mask = (self._source(o, 32) for o in operands[1:])

        def run(warp, lanes):
            self._want_all(lanes)
            values, b, c = value(warp), operand(warp), clamp(warp)
            if mask(warp) != [0xffffffff] * LANES:
                raise Unknown("a shuffle of some lanes")
            result, inside = [], []
            for lane in EVERY:
                segment, last = c[lane] >> 8 & 31, c[lane] & 31
                highest = lane & segment | last & ~segment
                j = lane & segment | b[lane] & 31 & ~segment if mode == "idx" else lane ^ b[lane] & 31
                inside.append(int(j <= highest))
                result.append(values[j if j <= highest else lane])
            warp.set(target, lanes, result)
            if valid:
                warp.set(valid, lanes, inside)
        return run

    def _ballot(self, operands):
        target, vote = operands[:2]
        source = self._source(vote.lstrip("!"), 1)

        def run(warp, lanes):
            self._want_all(lanes)
            wants = not vote.startswith("!")
            votes = sum(1 << lane for lane, value in enumerate(source(warp)) if bool(value) == wants)
            warp.set(target, lanes, [votes] * LANES)
        return run

    def _multiply(self, product, operands):
        names = [self._elements(operand) for operand in operands]
        a, b, c = ([self._source(name, 32) for name in of] for of in names[1:])

        def run(warp, lanes):
            self._want_all(lanes)
            result = product.multiply(*([source(warp) for source in of] for of in (a, b, c)))
            for name, values in zip(names[0], result):
                warp.set(name, lanes, values)
        return run
