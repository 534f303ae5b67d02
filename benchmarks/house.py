"""The size of the house: `python -m benchmarks.house`. Counted, never asserted.

Files and lines of code, the ten records with the most fields, class names that stand twice, the modules that a plain
`run_sync` loads, and the function calls and files of wakeful from `run` to the first request to a model.
"""

import ast
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import wakeful

PACKAGE = Path(wakeful.__file__).parent
_PROGRAM = """
import json, sys
import asyncio
from wakeful import Agent, run, run_sync
from wakeful.testing import scripted
package = sys.argv[1]
calls, files, asked = 0, set(), False
class Model:
    ref = "scripted:inline"
    def respond(self, request):
        global asked
        asked = True
        return given.respond(request)
    def __getattr__(self, name):
        return getattr(given, name)
given = scripted(["done"])
agent = Agent("counted", Model())
def trace(frame, event, _):
    global calls
    if event == "call" and not asked and frame.f_code.co_filename.startswith(package):
        calls += 1
        files.add(frame.f_code.co_filename)
counting = sys.argv[2] == "calls"
if counting:
    run_sync(agent, "once before: what is loaded late is loaded")
    asked = False
    async def main():
        sys.setprofile(trace)
        await run(agent, "hello")
        sys.setprofile(None)
    asyncio.run(main())
else:
    run_sync(agent, "hello")
loaded = sum(name.split(".")[0] == "wakeful" for name in sys.modules)
print(json.dumps({"calls": calls, "files": len(files), "loaded": loaded}))
"""


def code_lines(text: str) -> int:
    """Lines that hold code: no blank lines, no comments, no docstrings."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(
        [
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.strip().startswith("#") and number not in documented
        ]
    )


def records() -> tuple[list[tuple[int, str]], Counter[str]]:
    """Classes by the number of their annotated fields, and how often each class name stands."""
    fields, names = [], Counter[str]()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                if not node.name.startswith("_"):
                    names[node.name] += 1
                own = [each for each in node.body if isinstance(each, ast.AnnAssign) and not _is_of_class(each)]
                fields.append((len(own), f"{node.name} ({file.relative_to(PACKAGE).as_posix()})"))
    return sorted(fields, reverse=True), names


def _is_of_class(field: ast.AnnAssign) -> bool:
    """What all instances share is no field."""
    return "ClassVar" in ast.unparse(field.annotation)


def counted(what: str) -> dict[str, int]:
    """One run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(PACKAGE), what], capture_output=True, text=True, check=True
    )
    found: dict[str, int] = json.loads(done.stdout)
    return found


def main() -> None:
    texts = [file.read_text() for file in PACKAGE.rglob("*.py")]
    fields, names = records()
    twice = sorted(name for name, times in names.items() if times > 1)
    run = counted("calls")
    print(f"files: {len(texts)}")
    print(f"lines of code: {sum(map(code_lines, texts)):,}")
    print(f"class names that stand twice: {len(twice)}: {', '.join(twice)}")
    print(f"modules that a plain run_sync loads: {counted('loaded')['loaded']}")
    print(f"from run to the first request: {run['calls']} calls in {run['files']} files")
    print("largest records: " + "; ".join(f"{name} {count}" for count, name in fields[:10]))


if __name__ == "__main__":
    main()
