"""A worker whose ledger is on a Redis Cluster: RQ's register and commands are on a plain server beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rq.worker import BaseWorker

from tenure.app import Tenure
from tenure.scripts.errors import BadInput
from tenure.settings import Settings
from tenure.testing import Server, servers, wait_until

from .test_worker import Shop
from .worker_process import start_worker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = servers.start("cluster", tmp_path_factory.mktemp("cluster") / "server")
    yield str(server.url)
    server.close()


@pytest.fixture
def plain(tenure_server: Server) -> str:
    if tenure_server.url is None or tenure_server.kind == "cluster":
        pytest.skip("needs a plain server beside the cluster")
    return tenure_server.url


def test_a_job_of_a_cluster_runs_and_rq_sees_the_worker(cluster: str, plain: str, tmp_path: Path) -> None:
    app = Tenure(Settings(redis_url=cluster, rq_url=plain))
    job = Shop(app.ledger()).make("noop")
    worker = start_worker(
        tmp_path, {"TENURE_REDIS_URL": cluster, "TENURE_RQ_URL": plain}, slots=1, name="w-c"
    )
    try:
        assert Shop(app.ledger()).ended(job).status == "succeeded"
        redis = app.rq_redis()
        wait_until(lambda: "w-c" in [one.name for one in BaseWorker.all(connection=redis)], "it to be seen")
        redis.close()
        assert worker.stop() == 0, worker.said()
    finally:
        worker.kill()
        app.close()


def test_a_cluster_without_a_server_for_rq_is_refused_in_a_sentence(cluster: str, tmp_path: Path) -> None:
    worker = start_worker(tmp_path, {"TENURE_REDIS_URL": cluster})

    assert worker.process.wait(60) != 0
    assert f"redis_url is '{cluster}', a Redis Cluster" in worker.said()


def test_a_cluster_as_the_server_for_rq_is_refused(cluster: str, plain: str) -> None:
    app = Tenure(Settings(redis_url=plain, rq_url=cluster))

    with pytest.raises(
        BadInput, match=r"rq_url is '.*', a Redis Cluster: .* needs a plain server"
    ) as refused:
        app.rq_redis()

    assert "TENURE_RQ_URL" in refused.value.hint
    app.close()


def test_a_client_for_rq_is_its_own(app: Tenure, plain: str) -> None:
    one, other = app.rq_redis(), app.rq_redis()

    assert one.connection_pool is not other.connection_pool
    assert one.connection_pool is not app.redis().connection_pool
    one.close()
    other.close()
