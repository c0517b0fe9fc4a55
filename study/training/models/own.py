"""A user's own model: what its factory makes, its layer groups, and the line of the user's file in
each error."""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from study.base.errors import StudyError, first_line
from study.base.files import PACKAGE
from study.base.privacy import anonymous
from study.config.own_model import SKIPPED, home, outside_its_folder

FACTORY = (
    "package.module:factory, importable from the folder where the study is started, "
    "called with classes=..."
)
BODY = (
    "0, or a model with an attribute body (a module, or names of modules) or a function "
    "layer_groups (the head last)"
)


def made(path: str, classes: int, seed: int) -> nn.Module:
    """Return the model that the user's factory makes, random from ``seed``."""
    module_name, _, attribute = path.partition(":")
    before, here = {*sys.modules}, Path.cwd()
    try:
        module = importlib.import_module(module_name)
        factory = getattr(module, attribute)
        torch.manual_seed(seed)
        model = factory(classes=classes)
    # a user's code can raise anything, and argparse ends the process
    except (Exception, SystemExit) as error:
        os.chdir(here)  # which the lines of the user's files are looked up in
        raise refused(path, f"cannot be loaded ({words_of(error)})", error, FACTORY) from None
    loaded = [getattr(sys.modules[name], "__file__", None) for name in sys.modules.keys() - before]
    if beside := outside_its_folder(path, here, filter(None, loaded)):
        why = (
            f"imports {beside.parent.name}/{beside.name}, which lies outside the folder of "
            "its module: no key holds it"
        )
        raise refused(path, why, allowed="a package that holds all that the model imports")
    if not isinstance(model, nn.Module):
        why = f"made a {type(model).__name__} for classes={classes}"
        raise refused(path, why, allowed="a torch.nn.Module")
    if lazy := [name for name, value in model.named_parameters() if is_lazy(value)]:
        why = (
            f"has a parameter without a shape, {lazy[0]}: a lazy layer learns it from its "
            "first images"
        )
        raise refused(
            path, why, allowed="layers with sizes, or a factory that calls the model once"
        )
    return model


def refused(
    path: str, why: str, error: BaseException | None = None, allowed: str = ""
) -> StudyError:
    """Return the error of the model ``path``, with the last line of the user's files that ``error``
    went through.

    Without one that is the line where the factory begins.
    """
    ends = f"; allowed: {allowed}" if allowed else ""
    return StudyError(f"model.name: {path!r} {why}{_line(path, error)}{ends}")


def words_of(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message."""
    return f"{error.__class__.__name__}: {anonymous(first_line(error))}"


def _line(path: str, error: BaseException | None) -> str:
    """Return file and line in brackets, or nothing if no file of the user is known."""
    at = home(path, Path.cwd())
    trace = traceback.extract_tb(error.__traceback__ if error else None)
    places = [(frame.filename, frame.lineno) for frame in trace]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    found = [(file, line) for file, line in places if _is_users(Path(file), at)] or [
        *_factory(path)
    ]
    for name, line in found[-1:]:
        file = Path(name)
        return f" ({file.relative_to(at) if file.is_relative_to(at) else file.name}, line {line})"
    return ""


def _is_users(file: Path, at: Path) -> bool:
    return (
        file.is_relative_to(at) and not file.is_relative_to(PACKAGE) and not SKIPPED & {*file.parts}
    )


def _factory(path: str) -> Iterator[tuple[str, int]]:
    """Yield file and line of the factory, if it can be imported and has any."""
    module, _, attribute = path.partition(":")
    try:
        factory = inspect.unwrap(getattr(importlib.import_module(module), attribute))
        yield inspect.getfile(factory), inspect.getsourcelines(factory)[1]
    except (Exception, SystemExit):
        return


def layer_groups(model: nn.Module, name: str, freeze_epochs: int) -> list[list[str]]:
    """Return the names of the parameters in groups of one learning rate, the head's last, without
    what it froze itself.

    A model whose body is never frozen is trained whole, in one group.
    """
    trained = [key for key, parameter in model.named_parameters() if parameter.requires_grad]
    if not trained:
        raise refused(name, "has no parameter that can be trained")
    if not freeze_epochs:
        return [trained]
    groups = named_groups(model, name)
    if len(groups) < 2:
        why = "it does not say what its body is"
        raise StudyError(
            key="training.freeze_epochs",
            value=freeze_epochs,
            context=f"with model.name {name}",
            why=why,
            allowed=BODY,
        )
    kept = [[key for key in group if key in trained] for group in groups]
    if not kept[-1]:
        raise refused(name, "has no parameter beside its body that can be trained")
    return [group for group in kept if group]


def named_groups(model: nn.Module, name: str) -> list[list[str]]:
    """Return the names of the parameters in the groups that the model says, each in one; one group
    if it says none."""
    every = [key for key, _ in model.named_parameters()]
    said = getattr(model, "layer_groups", None)
    if said is not None:
        groups = [_names(model, name, part) for part in (said() if callable(said) else said)]
        if missing := set(every).symmetric_difference(chain.from_iterable(groups)):
            raise refused(
                name,
                f"has layer groups without {min(missing)}",
                allowed="every parameter in one group",
            )
        return groups
    body = getattr(model, "body", None)
    if body is None:
        return [every]
    inside = {*_names(model, name, body)}
    return [[key for key in every if key in inside], [key for key in every if key not in inside]]


def _names(model: nn.Module, name: str, part: Any) -> list[str]:
    """Return the names of the parameters in a part: a module, a parameter, the name of either, or
    several of these."""
    if isinstance(part, str):
        try:
            part = model.get_submodule(part)
        except AttributeError:
            part = dict(model.named_parameters()).get(part)
    if isinstance(part, (nn.Module, nn.Parameter)):
        inside = {
            id(one) for one in ([part] if isinstance(part, nn.Parameter) else part.parameters())
        }
        return [key for key, value in model.named_parameters() if id(value) in inside]
    if not isinstance(part, Iterable):
        raise refused(
            name,
            "has a part of its body that is no module of it",
            allowed="modules, or their names",
        )
    return list(chain.from_iterable(_names(model, name, one) for one in part))


def unfit(model: nn.Module, name: str, state: Any) -> list[str]:
    """Return the names of the head's parameters that a state dict lacks or has in another shape.

    The head of a model that does not say its body is not known.
    """
    own, groups = dict(model.named_parameters()), named_groups(model, name)
    head: Sequence[str] = groups[-1] if len(groups) > 1 else ()
    return [key for key in head if key not in state or state[key].shape != own[key].shape]
