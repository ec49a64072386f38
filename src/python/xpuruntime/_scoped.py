"""Functions of every kind that run inside a scope. Loaded when the first one is decorated."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from contextlib import AbstractContextManager

    Scope = AbstractContextManager[Any]


def scoped(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the scope in force whenever its own code runs."""
    if inspect.isasyncgenfunction(function):
        return _async_generator(scope, function)
    if inspect.iscoroutinefunction(function):
        return _coroutine(scope, function)
    if inspect.isgeneratorfunction(function):
        return _generator(scope, function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return function(*args, **kwargs)

    return call


def _coroutine(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return await function(*args, **kwargs)

    return call


# Generators share the context of whoever drives them: the scope is entered for each step and left before each yield.


def _generator(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with scope:
            inner = function(*args, **kwargs)
        step, given = inner.send, None
        try:
            while True:
                with scope:
                    value = step(given)
                try:
                    given = yield value
                    step = inner.send
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step, given = inner.throw, error
        except StopIteration as stop:
            return stop.value
        finally:
            with scope:
                inner.close()

    return call


def _async_generator(scope: Scope, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with scope:
            inner = function(*args, **kwargs)
        step, given = inner.asend, None
        try:
            while True:
                with scope:
                    value = await step(given)
                try:
                    given = yield value
                    step = inner.asend
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step, given = inner.athrow, error
        except StopAsyncIteration:
            return
        finally:
            with scope:
                await inner.aclose()

    return call
