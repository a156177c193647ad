"""A session of Spark: on the JVM, or on a server that speaks its protocol without one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["spark_session"]


def spark_session() -> Iterator[Any]:
    """Two cores, several partitions, and small batches, so that subjects straddle them."""
    # A worker of pytest has a main module without a file, which pyspark takes for its doctests.
    main = sys.modules["__main__"]
    main.__file__ = getattr(main, "__file__", __file__)
    from pyspark.sql import SparkSession

    if os.environ.get("EXPOST_SPARK") == "jvm":
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        yield from _ready(session)
        return
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer()
    server.start(background=True)
    _, port = server.listening_address
    # Where whoever asks for a session finds it, as on a cluster.
    os.environ["SPARK_REMOTE"] = f"sc://localhost:{port}"
    yield from _ready(SparkSession.builder.getOrCreate())
    del os.environ["SPARK_REMOTE"]
    server.stop()


def _ready(session: Any) -> Iterator[Any]:
    session.conf.set("spark.sql.shuffle.partitions", "5")
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    yield session
    session.stop()
