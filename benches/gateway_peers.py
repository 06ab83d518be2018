"""FastMCP's proxy in front of a server: gateway_peers.py <url of the server> <port>."""

import logging
import sys

from fastmcp.server import create_proxy


def main() -> None:
    server, port = sys.argv[1], int(sys.argv[2])
    logging.disable(logging.CRITICAL)
    proxy = create_proxy(server, name="proxy")
    proxy.run(
        transport="http",
        host="127.0.0.1",
        port=port,
        path="/mcp",
        # Single JSON responses are faster.
        json_response=True,
        show_banner=False,
        log_level="critical",
        uvicorn_config={"access_log": False},
    )


if __name__ == "__main__":
    main()
