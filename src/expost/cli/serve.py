"""``expost serve``: a study over HTTP."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from expost.cli._options import file_option, flag_option, value_option
from expost.cli.ledger._options import checkpoint_file, ledger_location
from expost.errors import InvalidInput

__all__ = ["command"]


@click.command("serve")
@ledger_location
@checkpoint_file
@value_option("--host", "ADDRESS", "Address to listen on.", default="127.0.0.1")
@click.option("--port", type=click.IntRange(0, 65535), default=8321, help="Port to listen on.")
@file_option("--tls-cert", "FILE", "Certificate chain (PEM).")
@file_option("--tls-key", "FILE", "Private key of the certificate (PEM).")
@flag_option("--insecure-http", "Listen on any address without encryption, behind a proxy.")
@flag_option("--new-admin-token", "Make and print another administrator token.")
@click.option(
    "--smallest-group",
    type=click.IntRange(1),
    default=20,
    help="Fewest subjects that an analyst may ask about.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=20.0,
    help="Requests per second and token, on average.",
)
def command(
    location: str,
    checkpoint: Path | None,
    host: str,
    port: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    insecure_http: bool,
    new_admin_token: bool,
    smallest_group: int,
    rate: float,
) -> None:
    """Serve a study over HTTP.

    Create the ledger first (expost ledger create). The first start prints an administrator token;
    store it. SIGTERM stops the server after the running commit. It needs the extra 'serve'.
    """
    try:
        from expost.collector._server import check_address, serve
        from expost.collector._service import Settings
    except ModuleNotFoundError as error:
        raise InvalidInput(f"requires {error.name}: pip install 'expost[serve]'") from None
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("expected both --tls-cert and --tls-key")
    check_address(host, tls=tls_cert is not None, insecure=insecure_http)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    settings = Settings(location, checkpoint, smallest_group, rate)
    serve(
        settings,
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        new_token=new_admin_token,
        announce=lambda line: print(line, flush=True),
    )
