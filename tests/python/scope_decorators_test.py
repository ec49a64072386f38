"""Scopes as decorators: in force while the code of a function, coroutine or generator runs, and at no other time."""

import asyncio
import functools
import gc
import unittest
from collections.abc import AsyncIterator, Iterator

from scope_case import ScopeCase, kernel

import xpuruntime as xrt


class DecoratorTest(ScopeCase):
    def test_functions_keep_their_name_arguments_and_result(self) -> None:
        @xrt.with_policy(matmul="reference")
        def work(a: int, *, b: int = 2) -> tuple[int, object]:
            """What it does."""
            return a + b, kernel()

        self.assertEqual(work(1, b=3), (4, "reference"))
        self.assertEqual((work.__name__, work.__doc__), ("work", "What it does."))

    def test_functions_that_call_themselves(self) -> None:
        @xrt.with_policy(matmul="reference")
        def count(n: int) -> list[object]:
            return [kernel()] + (count(n - 1) if n else [])

        self.assertEqual(count(3), ["reference"] * 4)

    def test_coroutines_are_in_it_while_they_run_and_not_when_they_are_made(self) -> None:
        @xrt.with_policy(matmul="reference")
        async def work() -> object:
            await asyncio.sleep(0)
            return kernel()

        async def main() -> tuple[object, object]:
            waiting = work()
            before = kernel()
            return before, await waiting

        self.assertTrue(asyncio.iscoroutinefunction(work))
        self.assertEqual(asyncio.run(main()), (self.usual, "reference"))

    def test_generators_are_in_it_while_they_run_and_their_users_are_not(self) -> None:
        @xrt.with_policy(matmul="reference")
        def produce() -> Iterator[object]:
            yield kernel()
            yield kernel()

        seen = [(inside, kernel()) for inside in produce()]
        self.assertEqual(seen, [("reference", self.usual)] * 2)

    def test_generators_take_what_is_sent_and_thrown_and_return(self) -> None:
        log: list[object] = []

        @xrt.with_policy(matmul="reference")
        def produce():
            try:
                log.append((yield 1))
                yield 2
            except KeyError:
                log.append(("thrown", kernel()))
                yield 3
            return "result"

        made = produce()
        self.assertEqual((next(made), made.send("sent"), made.throw(KeyError())), (1, 2, 3))
        with self.assertRaises(StopIteration) as stop:
            next(made)
        self.assertEqual(stop.exception.value, "result")
        self.assertEqual(log, ["sent", ("thrown", "reference")])

    def test_a_generator_that_is_closed_cleans_up_inside(self) -> None:
        log: list[object] = []

        @xrt.with_policy(matmul="reference")
        def produce() -> Iterator[int]:
            try:
                yield 1
            finally:
                log.append(kernel())

        made = produce()
        next(made)
        made.close()
        dropped = produce()
        next(dropped)
        del dropped
        gc.collect()
        self.assertEqual(log, ["reference", "reference"])

    def test_async_generators_are_in_it_while_they_run_and_their_users_are_not(self) -> None:
        log: list[object] = []

        @xrt.with_policy(matmul="reference")
        async def produce() -> AsyncIterator[object]:
            try:
                while True:
                    await asyncio.sleep(0)
                    yield kernel()
            finally:
                log.append(kernel())

        async def main() -> list[object]:
            seen: list[object] = []
            made = produce()
            async for inside in made:
                seen.append((inside, kernel()))
                if len(seen) == 2:
                    break
            await made.aclose()
            return seen

        self.assertEqual(asyncio.run(main()), [("reference", self.usual)] * 2)
        self.assertEqual(log, ["reference"])

    def test_async_generators_take_what_is_sent_and_thrown(self) -> None:
        @xrt.with_policy(matmul="reference")
        async def produce():
            try:
                got = yield 1
                yield got
            except KeyError:
                yield kernel()

        async def main() -> tuple[object, ...]:
            made = produce()
            seen = await made.__anext__(), await made.asend("sent"), await made.athrow(KeyError())
            with self.assertRaises(StopAsyncIteration):
                await made.__anext__()
            return seen

        self.assertEqual(asyncio.run(main()), (1, "sent", "reference"))

    def test_methods_and_partial_functions(self) -> None:
        class Model:
            @xrt.with_policy(matmul="reference")
            def forward(self, value: int) -> tuple[int, object]:
                return value, kernel()

        self.assertEqual(Model().forward(7), (7, "reference"))
        scope = xrt.with_policy(matmul="packed")
        self.assertEqual(scope.run(functools.partial(lambda a, b: (a, b, kernel()), 1), 2), (1, 2, "packed"))

    def test_what_cannot_be_called_is_refused(self) -> None:
        with self.assertRaisesRegex(TypeError, "decorate a function"):
            xrt.with_policy(matmul="reference")(3)  # type: ignore[arg-type]

    def test_a_scope_inside_a_plain_generator_is_left_wherever_it_is_closed(self) -> None:
        def produce() -> Iterator[int]:
            with xrt.with_policy(matmul="reference"):
                yield 1

        first, second = produce(), produce()
        next(first), next(second)
        first.close()
        self.assertEqual(kernel(), "reference")
        second.close()
        self.assertEqual(kernel(), self.usual)


if __name__ == "__main__":
    unittest.main()
