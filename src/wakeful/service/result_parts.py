"""The parts of a result that is a document too: each is declared once, as an attribute, with its form in the document.

A class of `Parts` takes its plain parts as keywords and makes the others when they are first asked for. Its document
(the order of its fields, their types, what is written and what is read back) follows from the same declarations.
"""

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from inspect import Parameter, Signature, get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, dataclass_transform

from pydantic import Field, create_model

from wakeful.contracts.values import Value

T = TypeVar("T")
MISSING: Final = object()


class Part(Generic[T]):
    """One part: an attribute of the result, and a field of its document unless it has no `json` name."""

    name: str
    json: str | None
    """Its name in the document."""
    kind: Any
    """Its type there."""

    def __init__(
        self,
        fget: Callable[[Any], T] | None,
        *,
        default: object = MISSING,
        alias: str | None = None,
        json: str | None = None,
        sparse: bool = False,
        words: bool = False,
        absent: object = MISSING,
        if_any: bool = False,
    ) -> None:
        self.fget = fget
        """Makes it, when it is not given."""
        self.default = default
        self.alias = alias
        """The keyword that gives it, where that is not its name."""
        self.json = json
        self.sparse = sparse
        """What is null inside it is left out of the document."""
        self.words = words
        """Somebody's words: secrets are hidden in them."""
        self.absent = absent
        """What a document without it means."""
        self.if_any = if_any
        """A document has it only where there is one."""
        self.__doc__ = fget.__doc__ if fget is not None else None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        if self.json is None and not name.startswith("_"):
            self.json = name

    def __get__(self, result: object, owner: type) -> T:
        # What was given or made stands in the result's own __dict__ and is found there first.
        if result is None:
            return self  # type: ignore[return-value]
        if self.fget is None:
            raise AttributeError(f"a result without {self.name}")
        made: T = vars(result).setdefault(self.name, self.fget(result))
        return made

    @property
    def keyword(self) -> str:
        return self.alias or self.name

    def encoded(self, value: Any) -> Any:
        """The value as JSON data."""
        if isinstance(value, Value):
            return value.model_dump(mode="json", exclude_none=self.sparse)
        return [self.encoded(each) for each in value] if isinstance(value, tuple | MutableSequence) else value


def part(
    *,
    default: object = MISSING,
    alias: str | None = None,
    json: str | None = None,
    sparse: bool = False,
    words: bool = False,
    absent: object = MISSING,
    if_any: bool = False,
) -> Any:
    """A part that is given."""
    return Part(None, default=default, alias=alias, json=json, sparse=sparse, words=words, absent=absent, if_any=if_any)


def derive(
    *, json: str | None = None, sparse: bool = False, words: bool = False, absent: object = MISSING
) -> Callable[[Callable[[Any], T]], Part[T]]:
    """A part that is made from the others when it is first asked for."""
    return lambda fget: Part(fget, json=json, sparse=sparse, words=words, absent=absent)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(part,))
class Parts:
    """The base of a result."""

    _parts: ClassVar[Mapping[str, Part[Any]]] = {}
    _given: ClassVar[Sequence[tuple[str, str, object]]] = ()
    """Of those that are given: the name, the keyword, the default."""

    if not TYPE_CHECKING:  # a type checker makes the constructor from the fields

        def __init__(self, **given: Any) -> None:
            own = vars(self)
            for name, keyword, default in self._given:
                value = given.pop(keyword, default)
                if value is MISSING:
                    raise TypeError(f"{type(self).__name__}() needs {keyword}=")
                own[name] = value
            for keyword in given:
                raise TypeError(f"{type(self).__name__}() has no {keyword!r}")

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        kinds = get_annotations(cls)
        found = {name: each for name, each in vars(cls).items() if isinstance(each, Part)}
        keywords = []
        for name, each in found.items():
            each.kind = kinds[name] if each.fget is None else get_annotations(each.fget)["return"]
            if each.fget is None:
                default = Parameter.empty if each.default is MISSING else each.default
                keywords.append(Parameter(each.keyword, Parameter.KEYWORD_ONLY, default=default, annotation=each.kind))
        cls._parts = found
        cls._given = [(name, each.keyword, each.default) for name, each in found.items() if each.fget is None]
        cls.__signature__ = Signature(keywords)  # type: ignore[attr-defined]


def document(owner: type[Parts], name: str, words: str, **header: Any) -> type[Value]:
    """The shape of a result's document: the header, and every part that it has there, in their order."""
    fields: dict[str, Any] = dict(header)
    for each in owner._parts.values():
        if each.json is not None:
            fields[each.json] = (each.kind, ... if each.absent is MISSING else Field(each.absent))
    return create_model(name, __base__=Value, __doc__=words, **fields)
