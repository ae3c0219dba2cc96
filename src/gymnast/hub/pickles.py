"""Pickles as data: a reader that builds inert values and never imports, calls or constructs what a file asks for.

A pickle is a program for a small stack machine; unpickling runs it, and `GLOBAL` + `REDUCE` call any function there is.
This machine walks the same opcodes, but keeps names as text and calls as `Node`s. What a `Node` means is decided by those
who read it, and they know only number arrays, tensors, spaces and running statistics.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from gymnast.errors import CheckpointError
from gymnast.hub.nodes import KEY_TYPES, PERSISTENT, Node

MAX_BYTES = 64 << 20
MAX_OPCODES = 300_000
MAX_MARKS = 1_000
MAX_INT_BITS = 1_024
HIGHEST_PROTOCOL = 5


class _DamagedError(Exception):
    """Why a pickle cannot be read."""


def read(data: bytes, where: str) -> Any:
    """The value a pickle describes, as plain Python data and `Node`s. `where` names the file in errors."""
    if len(data) > MAX_BYTES:
        raise CheckpointError(f"{where} holds a pickle of {len(data):,} bytes; more than {MAX_BYTES:,} are not read.")
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count >= MAX_OPCODES:
                raise _DamagedError(f"it has more than {MAX_OPCODES:,} instructions")
            machine.step(opcode.name, argument)
        return machine.result()
    except _DamagedError as error:
        raise CheckpointError(f"{where} cannot be read: {error}.") from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, EOFError):
        raise CheckpointError(f"{where} is damaged: it is not a whole pickle.") from None


class _Machine:
    """Stack, memo and one method per opcode; an opcode without a method is refused."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._stopped = False

    def step(self, name: str, argument: Any) -> None:
        """Carry out one instruction."""
        if name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            self._literal(argument)
        elif name in _FIXED_TUPLES:
            self._stack.append(tuple(self._pop_many(_FIXED_TUPLES[name])))
        elif name in _PUTS:
            self._memo[argument] = self._stack[-1]
        elif name in _GETS:
            self._stack.append(self._memo[argument])
        elif method := _METHODS.get(name):
            method(self, argument)
        else:
            raise _DamagedError(f"it uses the pickle instruction {name}, which no model file needs")

    def result(self) -> Any:
        """What was on the stack at STOP."""
        if not self._stopped or len(self._stack) != 1:
            raise _DamagedError("it ends too early")
        return self._stack[0]

    def _pop(self) -> Any:
        if len(self._stack) <= (self._marks[-1] if self._marks else 0):
            raise _DamagedError("its instructions do not fit together")
        return self._stack.pop()

    def _pop_many(self, count: int) -> list[Any]:
        return [self._pop() for _ in range(count)][::-1]

    def _pop_to_mark(self) -> list[Any]:
        start = self._marks.pop()
        values = self._stack[start:]
        del self._stack[start:]
        return values

    # ---- values ----------------------------------------------------------------------------------------------------

    def _literal(self, value: Any) -> None:
        if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
            raise _DamagedError(f"it holds a whole number of {value.bit_length():,} bits")
        self._stack.append(value)

    def proto(self, version: int) -> None:
        if not 2 <= version <= HIGHEST_PROTOCOL:
            raise _DamagedError(f"it is a pickle of protocol {version}; 2 to {HIGHEST_PROTOCOL} are known")

    def frame(self, _: Any) -> None:
        """Frames only help readers of streams."""

    def stop(self, _: Any) -> None:
        self._stopped = True

    def mark(self, _: Any) -> None:
        if len(self._marks) >= MAX_MARKS:
            raise _DamagedError(f"its values are nested more than {MAX_MARKS:,} deep")
        self._marks.append(len(self._stack))

    def pop(self, _: Any) -> None:
        if self._marks and self._marks[-1] == len(self._stack):
            self._marks.pop()  # POP also takes a bare mark away
        else:
            self._pop()

    def pop_mark(self, _: Any) -> None:
        self._pop_to_mark()

    def dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    # ---- collections -----------------------------------------------------------------------------------------------

    def empty_list(self, _: Any) -> None:
        self._stack.append([])

    def empty_dict(self, _: Any) -> None:
        self._stack.append({})

    def empty_set(self, _: Any) -> None:
        self._stack.append(set())

    def tuple_(self, _: Any) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def list_(self, _: Any) -> None:
        self._stack.append(self._pop_to_mark())

    def dict_(self, _: Any) -> None:
        values = self._pop_to_mark()
        self._stack.append({})
        self._set_items(values)

    def frozenset_(self, _: Any) -> None:
        self._stack.append(frozenset(_key(value) for value in self._pop_to_mark()))

    def append(self, _: Any) -> None:
        self._add([self._pop()])

    def appends(self, _: Any) -> None:
        self._add(self._pop_to_mark())

    def _add(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, list):
            target += values
        elif not isinstance(target, Node):  # whose appended values are never read
            raise _DamagedError("it appends to something that is not a list")

    def additems(self, _: Any) -> None:
        values = self._pop_to_mark()
        target = self._stack[-1]
        if isinstance(target, set):
            target.update(_key(value) for value in values)
        elif not isinstance(target, Node):
            raise _DamagedError("it adds to something that is not a set")

    def setitem(self, _: Any) -> None:
        self._set_items(self._pop_many(2))

    def setitems(self, _: Any) -> None:
        self._set_items(self._pop_to_mark())

    def _set_items(self, values: list[Any]) -> None:
        pairs = list(zip(values[::2], values[1::2], strict=True))
        target = self._stack[-1]
        if isinstance(target, Node):
            target.items += pairs
        elif isinstance(target, dict):
            target.update((_key(key), value) for key, value in pairs)
        else:
            raise _DamagedError("it sets items of something that is not a mapping")

    # ---- what a real unpickler would look up, call and fill ----------------------------------------------------------

    def global_(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._stack.append(Node(module, name))

    def stack_global(self, _: Any) -> None:
        module, name = self._pop_many(2)
        if not (isinstance(module, str) and isinstance(name, str)):
            raise _DamagedError("it looks up a name that is not text")
        self._stack.append(Node(module, name))

    def reduce(self, _: Any) -> None:
        function, arguments = self._pop_many(2)
        self._call(function, arguments)

    def newobj_ex(self, _: Any) -> None:
        kind, arguments, keywords = self._pop_many(3)
        if not isinstance(keywords, dict):
            raise _DamagedError("it calls something with keywords that are not a mapping")
        self._call(kind, arguments)
        self._stack[-1].kwargs = keywords

    def _call(self, function: Any, arguments: Any) -> None:
        if not isinstance(function, Node) or not isinstance(arguments, tuple):
            raise _DamagedError("it calls something that is not a function")
        if function.args is None:
            self._stack.append(Node(function.module, function.name, arguments))
        else:
            self._stack.append(Node("", f"the result of {function.path}", arguments))

    def build(self, _: Any) -> None:
        state = self._pop()
        if not isinstance(self._stack[-1], Node):
            raise _DamagedError("it gives attributes to something that has none")
        self._stack[-1].state = state

    def binpersid(self, _: Any) -> None:
        self._stack.append(Node("", PERSISTENT, (self._pop(),)))

    def persid(self, argument: str) -> None:
        self._stack.append(Node("", PERSISTENT, (argument,)))


def _key(value: Any) -> Any:
    if not isinstance(value, KEY_TYPES):
        raise _DamagedError(f"it uses a {type(value).__name__} as a key")
    return value


_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_FIXED_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS = {"BINPUT", "LONG_BINPUT"}
_GETS = {"BINGET", "LONG_BINGET"}
_METHODS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine.proto,
    "FRAME": _Machine.frame,
    "STOP": _Machine.stop,
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": _Machine.dup,
    "MEMOIZE": _Machine.memoize,
    "EMPTY_LIST": _Machine.empty_list,
    "EMPTY_DICT": _Machine.empty_dict,
    "EMPTY_SET": _Machine.empty_set,
    "TUPLE": _Machine.tuple_,
    "LIST": _Machine.list_,
    "DICT": _Machine.dict_,
    "FROZENSET": _Machine.frozenset_,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "ADDITEMS": _Machine.additems,
    "SETITEM": _Machine.setitem,
    "SETITEMS": _Machine.setitems,
    "GLOBAL": _Machine.global_,
    "STACK_GLOBAL": _Machine.stack_global,
    "REDUCE": _Machine.reduce,
    "NEWOBJ": _Machine.reduce,
    "NEWOBJ_EX": _Machine.newobj_ex,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.binpersid,
    "PERSID": _Machine.persid,
}
