"""What keeps the source easy to find one's way in: short parameter lists, folders that can be
surveyed, imports that do not turn in circles."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

from tests.support.repository import ROOT

MOST_PARAMETERS = 7
MOST_MODULES = 20
MOST_LINES = 500
# A module has at least as many lines, or is part of one that its readers open with it.
LEAST_LINES = 40
# Modules with fewer lines. Each is one thing that several folders use, which do not use what is
# beside it, or needs to stand alone for what it may import.
SMALL = {
    *("kafkalog.columns.records.sound_batches", "kafkalog.command_line.without_pandas"),
    *("kafkalog.format.side_files.log_dir_files", "kafkalog.inspection.start.reasons"),
    *("kafkalog.lake.manifest_rows", "kafkalog.log_lines", "kafkalog.resources"),
    "kafkalog.schemas",
    *("kafkalog.spark.source.quiet_workers", "kafkalog.storage.files.entries"),
    *("kafkalog.storage.files.read_counts", "kafkalog.storage.files.requests_at_once"),
    *("kafkalog.storage.reading.log_snapshots", "kafkalog.testing.group_offsets"),
    *("kafkalog.views.local_views", "kafkalog.wire.murmur2"),
    *("kafkalog.zookeeper.digest", "kafkalog.zookeeper.moments"),
}
# Spark, make or a shell starts them by their names.
STARTED = {
    *("kafkalog.__main__", "kafkalog.spark.fetch_jars", "kafkalog.spark.worker_daemon"),
    "kafkalog.spark.archive_classes",
    *("kafkalog.spark.source.discovery", "kafkalog.spark.source.zookeeper_discovery"),
}
PACKAGES = ("kafkalog", "jobs")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


@cache
def trees() -> dict[str, ast.Module]:
    """The modules' syntax trees. They are made in the worker that runs these tests alone."""
    return {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_callback(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether click calls a function, with a parameter for each option."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(".command(" in text or ".group(" in text for text in decorators)


def positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    parameters = [*function.args.posonlyargs, *function.args.args]
    return len([each for each in parameters if each.arg not in ("self", "cls")])


def imported(tree: ast.Module) -> set[str]:
    """The modules that a module names in imports, within functions too."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.update(name if name in MODULES else node.module for name in names)
    return found & MODULES.keys()


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """The names on a circle of imports; none if there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def folder(module: str) -> str:
    return str(MODULES[module].parent.relative_to(ROOT))


def folder_imports(imports: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """What folders import of each other. The package itself names what it exports, and each
    module may import the package for its version."""
    found: dict[str, set[str]] = {}
    for module, others in imports.items():
        if module not in PACKAGES and not module.endswith(".__main__"):
            folders = {folder(other) for other in others if other not in PACKAGES}
            found.setdefault(folder(module), set()).update(folders - {folder(module)})
    return found


def test_no_function_takes_more_than_seven_positional_parameters() -> None:
    long = {
        f"{name}.{function.name}": positional(function)
        for name, tree in trees().items()
        for function in functions(tree)
        if positional(function) > MOST_PARAMETERS and not is_callback(function)
    }
    assert not long, f"{long}: more than {MOST_PARAMETERS}; pass the rest by name, or a NamedTuple"


def test_no_folder_has_more_than_twenty_modules() -> None:
    modules = [path for path in MODULES.values() if path.name != "__init__.py"]
    modules += (ROOT / "tests").rglob("*.py")
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in modules)
    del counts["jobs"]  # a file for each job, with its name, is what a reader looks for
    large = {name: count for name, count in counts.items() if count > MOST_MODULES}
    assert not large, f"{large}: more than {MOST_MODULES} files; make a folder of one subject"


def lines(module: str) -> int:
    return len(MODULES[module].read_text().splitlines())


def test_no_module_is_longer_than_one_subject() -> None:
    assert [name for name in MODULES if lines(name) > MOST_LINES] == []


def test_no_module_is_small() -> None:
    imports = {name: imported(tree) for name, tree in trees().items()}
    readers = Counter(other for name, others in imports.items() for other in others - {name})
    small = {
        name
        for name, path in MODULES.items()
        if lines(name) < LEAST_LINES and path.name != "__init__.py"
    }
    # The command line finds a command, and a job, by the name of its file.
    found_by_name = {name for name in small if ".commands." in name or name.startswith("jobs.")}
    assert small - found_by_name == STARTED | SMALL, "merge what readers open together"
    assert not {name for name in SMALL if readers[name] < 2}, "merge it with its reader"


def test_no_files_import_each_other_in_a_circle() -> None:
    assert cycle({name: imported(tree) - {name} for name, tree in trees().items()}) == []


def test_no_folders_import_each_other_in_a_circle() -> None:
    assert cycle(folder_imports({name: imported(tree) for name, tree in trees().items()})) == []


def test_these_checks_find_what_they_look_for() -> None:
    tree = ast.parse("def f(a, b, c, d, e, f, g, h): pass\nimport kafkalog.errors")
    assert [positional(function) for function in functions(tree)] == [8]
    assert imported(tree) == {"kafkalog.errors"}
    assert set(cycle({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]})) == {"a", "b", "c"}
    between = {"kafkalog.wire.varints": ["kafkalog.format.faults"]}
    assert folder_imports(between) == {"kafkalog/wire": {"kafkalog/format"}}
