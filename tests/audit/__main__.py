"""`make audit CORPUS=...`: put a corpus into a node and print what its states, answers and modes are worth."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import grpc

from tests.audit import auditcrux, modes, queries, report, retrieval, states
from tests.audit.client import Auditor
from tests.audit.corpus import FOLDERS, SCIFACT, Corpus, load
from tests.audit.node import node
from tests.audit.queries import VARIANTS
from tests.audit.report import Report

PARTS = ("states", "queries", "modes", "retrieval")
_NOT_SERVED = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INVALID_ARGUMENT)


def main() -> int:
    """Run the audit; returns 1 when a document failed to get in, or a mode broke its promise."""
    arguments = _arguments()
    names = (*FOLDERS, auditcrux.NAME, modes.DEMO) if arguments.corpus == "all" else (arguments.corpus,)
    found = Report()
    failures = 0
    with node(address=arguments.address, cache=arguments.cache.absolute()) as address:
        for name in names:
            if name == auditcrux.NAME:
                _auditcrux(address, arguments, found)
            elif name == modes.DEMO:
                _demo(address, arguments, found)
            else:
                failures += _folder(load(name, arguments.feed), address, arguments, found)
    for line in report.lines(found, arguments.profile or ()):
        _print(line)
    report.write(found, arguments.json)
    _print(f"written to {arguments.json}")
    return 1 if failures or any(one.outcomes.get("breach") for one in found.modes) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=__doc__)
    known = ", ".join((*FOLDERS, SCIFACT, auditcrux.NAME, modes.DEMO))
    parser.add_argument("--corpus", default="peps", help=f"{known}, all, or the path of a folder of the same form")
    parser.add_argument("--only", choices=PARTS, action="append", help="one of the parts; all that apply by default")
    parser.add_argument("--profile", choices=tuple(VARIANTS), action="append", help="columns of the queries; all")
    parser.add_argument("--kind", action="append", default=[], help="kinds of question; all by default")
    parser.add_argument("--feed", action="append", default=[], help="fields to feed beside those that always are")
    parser.add_argument("--address", default="", help="a running node; by default one is started")
    cache = os.environ.get("AFFIDAVIT_EMBED_CACHE_DIR") or ".cache/vectors"
    parser.add_argument("--cache", type=Path, default=Path(cache), help="vectors kept between runs")
    parser.add_argument("--json", type=Path, default=Path(".cache/audit.json"), help="file for everything found")
    parser.add_argument("--scale", type=int, default=auditcrux.SCALE, help="documents of AuditCrux' scale sets")
    parser.add_argument("--split", default="test", help="queries of scifact: train or test")
    return parser.parse_args()


def _wants(arguments: argparse.Namespace, part: str) -> bool:
    return part in arguments.only if arguments.only else part != "retrieval"


def _profile(arguments: argparse.Namespace) -> str:
    chosen = next((name for name in arguments.profile or () if VARIANTS[name].asks), "v3.1")
    return VARIANTS[chosen].profile


def _put(auditor: Auditor, corpus: Corpus, found: Report) -> tuple[dict[str, str], int]:
    known, seconds = auditor.put(corpus)
    failed = auditor.failed()
    _print(
        f"{auditor.crate}: {len(corpus.documents)} documents, {auditor.chunks()} chunks, {len(failed)} failed, "
        f"{len(auditor.refused)} refused, {seconds:.1f} s"
    )
    found.notes += [f"{corpus.name}: failed: {source_id}" for source_id in failed]
    found.notes += [f"{corpus.name}: {n} relations of type {kind} aren't fed" for kind, n in corpus.skipped.items()]
    try:
        declared = auditor.declare(corpus.relations, known)
        _print(f"{auditor.crate}: {declared} relations")
    except TimeoutError as error:
        found.notes.append(f"{corpus.name}: {error}")
    except grpc.RpcError as error:
        if error.code() not in _NOT_SERVED:
            raise
        found.notes.append(f"{corpus.name}: relations aren't served: {error.details()}")
    found.notes += [f"{corpus.name}: {name} is refused: {reason}" for name, reason in auditor.refused.items()]
    return known, len(failed) + len(auditor.refused)


def _folder(corpus: Corpus, address: str, arguments: argparse.Namespace, found: Report) -> int:
    auditor = Auditor(address=address, crate=_crate(corpus.name))
    if corpus.not_fed:
        found.notes.append(f"{corpus.name}: fields not fed: {', '.join(corpus.not_fed)}")
    known, failed = _put(auditor, corpus, found)
    if _wants(arguments, "states") and any(document.accept for document in corpus.documents):
        _states(auditor, corpus, known, found)
    if _wants(arguments, "queries") and corpus.name != SCIFACT:
        for name in arguments.profile or VARIANTS:
            _print(f"{auditor.crate}: asking {name}")
            found.queries.append(queries.of_corpus(auditor, corpus, known, VARIANTS[name], arguments.kind))
    if _wants(arguments, "retrieval") or corpus.name == SCIFACT:
        for line, data in retrieval.of_corpus(auditor, corpus, known, arguments.split):
            _print(line)
            found.retrieval.append({"corpus": corpus.name, **data})
    return failed


def _states(auditor: Auditor, corpus: Corpus, known: Mapping[str, str], found: Report) -> None:
    try:
        found.states.append(states.of_corpus(auditor, corpus, known))
    except grpc.RpcError as error:
        if error.code() not in _NOT_SERVED:
            raise
        found.notes.append(f"{corpus.name}: states aren't served: {error.details()}")


def _auditcrux(address: str, arguments: argparse.Namespace, found: Report) -> None:
    for category in auditcrux.load(scale=arguments.scale):
        wants_states = _wants(arguments, "states") and category.expectations
        wants_modes = _wants(arguments, "modes") and category.questions and category.suite != "audit-features"
        if not wants_states and not wants_modes:
            continue
        auditor = Auditor(address=address, crate=_crate(category.crate))
        known, _ = _put(auditor, category.corpus, found)
        if wants_states:
            try:
                found.lifecycle.append(states.of_category(auditor, category, known))
            except grpc.RpcError as error:
                if error.code() not in _NOT_SERVED:
                    raise
                found.notes.append(f"{category.crate}: states aren't served: {error.details()}")
        if wants_modes:
            _modes(auditor, f"{category.suite}/{category.name}", category.questions, _profile(arguments), found)
            scenarios = modes.fragility_of(found.modes[-len(modes.SETTINGS)], category)
            found.fragility += scenarios


def _demo(address: str, arguments: argparse.Namespace, found: Report) -> None:
    if not _wants(arguments, "modes"):
        return
    corpus, questions = modes.demo()
    auditor = Auditor(address=address, crate=_crate(corpus.name))
    _put(auditor, corpus, found)
    _modes(auditor, corpus.name, questions, _profile(arguments), found)


def _modes(auditor: Auditor, name: str, questions: tuple[auditcrux.Question, ...], profile: str, found: Report) -> None:
    for setting in modes.SETTINGS:
        found.modes.append(modes.of_crate(auditor, name, questions, setting, profile))


def _crate(name: str) -> str:
    return ("audit-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"))[:40].rstrip("-")


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
