"""A mail server that prints its port, then every mail it takes, as lines of JSON.

Arguments: plain, busy, starttls or tls; the way to authenticate; a folder for its authority.
"""

import asyncio
import email
import json
import ssl
import sys

import trustme
from aiosmtpd.smtp import SMTP, AuthResult

mode, way, folder = sys.argv[1:]
used = []
refusals = ["451 come back later"] if mode == "busy" else []


class Handler:
    async def handle_DATA(self, server, session, envelope):
        if refusals:
            return refusals.pop()
        mail = email.message_from_bytes(envelope.original_content)
        tls = server.transport.get_extra_info("ssl_object") is not None
        told = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "auth": used[-1],
            "tls": tls,
            "headers": mail.items(),
            "body": mail.get_payload(decode=True).decode(),
        }
        print(json.dumps(told), flush=True)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    right = (data.login, data.password) == (b"warden", b"right")
    used.append(mechanism)
    return AuthResult(success=right, handled=False)


async def main():
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder + "/ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    starttls = mode == "starttls"

    def session():
        return SMTP(
            Handler(),
            hostname="localhost",
            authenticator=authenticate,
            auth_required=True,
            auth_require_tls=starttls,
            auth_exclude_mechanism=[it for it in ("PLAIN", "LOGIN") if it != way],
            require_starttls=starttls,
            tls_context=context if starttls else None,
        )

    # The name leads to either address, and the client tries both.
    server = await asyncio.get_running_loop().create_server(
        session, "127.0.0.1", 0, ssl=context if mode == "tls" else None
    )
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


asyncio.run(main())
