use super::load;

/// Every message about a text, without the name of the file.
fn error_lines(text: &str) -> Vec<String> {
    let error = load(text).unwrap_err().to_string();
    let lines = error.lines();
    lines
        .map(|line| {
            line.strip_prefix("etc/toolwarden.yaml:")
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let cases: &[(&str, &[&str])] = &[
        (
            "lisen: x\nservers: {}\n",
            &["1:1: /lisen: unknown key `lisen`, did you mean `listen`?"],
        ),
        ("servers: {a: {}}", &["1:11: /servers/a: one of `command`, `url`, `files` is needed"]),
        (
            "servers: {a: {command: x, url: http://h}}",
            &["1:27: /servers/a/url: `command` and `url` exclude each other"],
        ),
        (
            "servers: {a: {files: x.json, calls: []}, b: {url: http://h, calls: [{arguments: []}]}}",
            &[
                "1:30: /servers/a/calls: `files` and `calls` exclude each other",
                "1:69: /servers/b/calls/0: `tool` is missing",
                "1:70: /servers/b/calls/0/arguments: expected a mapping, found an array",
            ],
        ),
        (
            "servers: {a: {command: x, headers: {}}, b: {url: http://h, env: {}, cwd: .}}",
            &[
                "1:27: /servers/a/headers: `command` and `headers` exclude each other",
                "1:60: /servers/b/env: `url` and `env` exclude each other",
                "1:69: /servers/b/cwd: `url` and `cwd` exclude each other",
            ],
        ),
        (
            "servers: {a: {type: stdio, url: http://h}}",
            &["1:15: /servers/a/type: a server of the type `stdio` has no `url`"],
        ),
        (
            "servers: {a b: x}",
            &["1:11: /servers/a b: a server's name has 1 to 64 letters, digits, `-` and `_`"],
        ),
        (
            "servers: {a: x}\nmcpServers: {a: {command: y}}",
            &["2:14: /mcpServers/a: there are two servers `a`, under `servers` and under `mcpServers`"],
        ),
        (
            "servers: {a: 'npx \"x'}",
            &["1:11: /servers/a/command: the command line `npx \"x` has an unclosed quote or a trailing backslash"],
        ),
        (
            "servers: {a: 'npx ${PORT}'}",
            &["1:11: /servers/a/command: write the arguments under `args`, so that a reference stays one argument"],
        ),
        (
            "servers: {a: {url: 'ftp://u:p@h/x?y'}, b: {url: 'http://h', headers: {A: '${LINE}'}}}",
            &[
                "1:15: /servers/a/url: `ftp://h/x` is not an http or https address",
                "1:61: /servers/b/headers: the header `A` has an invalid name or value",
            ],
        ),
        (
            "servers: {a: {command: x, concurrency: 0, restart: {first: 2m}, timeouts: {idle: soon}, \
             breaker: {failures: '${PORT}x'}}}",
            &[
                "1:27: /servers/a/concurrency: expected a whole number from 1 to 4294967295, found 0",
                "1:43: /servers/a/restart: `most` is shorter than `first`",
                "1:76: /servers/a/timeouts/idle: `soon` is not a duration; write 90, 30s, 5m, 1.5h, 7d or 2w",
                "1:99: /servers/a/breaker/failures: expected a whole number from 1 to 4294967295, found a string",
            ],
        ),
        (
            "servers: {a: {command: x, args: [[1]], env: {A: null}, tool_defaults: {gruop: x, rate_limit: 0}}}",
            &[
                "1:34: /servers/a/args/0: expected a text, found an array",
                "1:46: /servers/a/env/A: expected a text, found null",
                "1:72: /servers/a/tool_defaults/gruop: unknown key `gruop`, did you mean `group`?",
                "1:82: /servers/a/tool_defaults/rate_limit: expected a whole number from 1 to 4294967295, found 0",
            ],
        ),
        (
            "listen: 8700\nstore: ''\nprefix: sometimes\nseparator: a b\npage_size: many",
            &[
                "1:1: /listen: expected a mapping, found a number",
                "2:1: /store: a path must not be blank",
                "3:1: /prefix: unknown word `sometimes`; known are always, conflict, never",
                "4:1: /separator: a separator has at most 8 letters, digits, `_`, `-` and `.`",
                "5:1: /page_size: expected a whole number from 1 to 4294967295, found a string",
            ],
        ),
        (
            "listen: {address: example.com:80, tls: {certificate: a}, max_body: 8 MiBs, public_url: x}",
            &[
                "1:10: /listen/address: `example.com:80` is not an address to listen on; write 127.0.0.1:8700 or [::1]:8700",
                "1:35: /listen/tls: `key` is missing",
                "1:58: /listen/max_body: `8 MiBs` is not a size; write 1048576, 512KiB, 8MiB or 10MB",
                "1:76: /listen/public_url: `x` is not an http or https address",
            ],
        ),
        (
            "watch: {on_drift: {brekaing: hide, trust: block}, before_call: 0, output: maybe, shapes: 1}",
            &[
                "1:20: /watch/on_drift/brekaing: unknown key `brekaing`, did you mean `breaking`?",
                "1:36: /watch/on_drift/trust: unknown word `block`; known are serve, hide, quarantine, block-server",
                "1:51: /watch/before_call: `0` is not a duration; write 90, 30s, 5m, 1.5h, 7d or 2w",
                "1:67: /watch/output: unknown word `maybe`; known are off, warn, report, enforce",
                "1:82: /watch/shapes: expected true or false, found a number",
            ],
        ),
        ("watch:\nidentity:", &[
            "1:1: /watch: `watch` has no value; write one, or leave the key out",
            "2:1: /identity: `identity` has no value; write one, or leave the key out",
        ]),
        (
            "
identity:
  api_keys: [{principal: a}, {key: '${CI_KEY}'}, {principal: a, sha256: abc}, {principal: a, key: k, sha256: l}]
  jwt: [{audience: a}, {issuer: x, audience: a}, {issuer: x}, {audience: a, secret: short}, {audience: a, public_key: x}, {audience: a, jwks: http://h, secret: x}]
  certificates: [{subject: '*'}]
",
            &[
                "3:14: /identity/api_keys/0: one of `sha256`, `key` is needed",
                "3:30: /identity/api_keys/1: `principal` is missing",
                "3:65: /identity/api_keys/2/sha256: a SHA-256 digest has 64 hexadecimal digits",
                "3:94: /identity/api_keys/3/key: `sha256` and `key` exclude each other",
                "4:9: /identity/jwt/0: one of `issuer`, `secret`, `public_key`, `jwks` is needed",
                "4:24: /identity/jwt/1: tokens of entry 1 of `identity.jwt` and tokens of `x` would name the same principals; give each issuer a `principal_prefix` of its own",
                "4:25: /identity/jwt/1/issuer: `x` is not an http or https address",
                "4:50: /identity/jwt/2: `audience` is missing",
                "4:51: /identity/jwt/2/issuer: `x` is not an http or https address",
                "4:77: /identity/jwt/3/secret: a secret for tokens has at least 32 bytes (RFC 7518)",
                "4:107: /identity/jwt/4/public_key: a public key is PEM text; `${file:path}` reads it from a file",
                "4:137: /identity/jwt/5/jwks: `secret` and `jwks` exclude each other",
                "5:3: /identity/certificates: `certificates` needs `listen.tls.client_ca`",
                "5:18: /identity/certificates/0: `principal` is missing",
            ],
        ),
        (
            "identity: {api_keys: [{principal: a, key: '${CI_KEY}'}, {principal: b, key: '${CI_KEY}'}]}",
            &["1:57: /identity/api_keys/1: two principals have the same key"],
        ),
        (
            "
alerts:
  a: {}
  b: {slack: http://h, webhook: http://h}
  c: {slack: http://h, secret: s}
  d: {smtp: {server: mail.example.com, security: none, user: u, from: f}}
  e: {slack: hooks, severity: urgent}
",
            &[
                "3:3: /alerts/a: one of `webhook`, `slack`, `feishu`, `dingtalk`, `wecom`, `smtp` is needed",
                "4:7: /alerts/b/slack: `webhook` and `slack` exclude each other",
                "5:24: /alerts/c/secret: `slack` and `secret` exclude each other",
                "6:7: /alerts/d/smtp: `to` is missing",
                "6:7: /alerts/d/smtp: `user` needs `password`",
                "6:14: /alerts/d/smtp/server: mail to another machine needs `security: starttls` or `tls`",
                "7:7: /alerts/e/slack: `hooks` is not an http or https address",
                "7:21: /alerts/e/severity: unknown word `urgent`; known are low, medium, high",
            ],
        ),
        (
            "traces: {sample: 2}",
            &[
                "1:1: /traces: `otlp` is missing",
                "1:10: /traces/sample: expected a number from 0 to 1, found 2",
            ],
        ),
        (
            "policy: {tools: {a: {grup: x}}, rols: {}}",
            &[
                "1:22: /policy/tools/a/grup: unknown key `grup`, did you mean `group`?",
                "1:33: /policy/rols: unknown key `rols`, did you mean `roles`?",
            ],
        ),
        (
            "version: 2\ntools: {a: {}}",
            &[
                "1:1: /version: this program reads version 1 of the settings",
                "2:1: /tools: `tools` is a key of a policy; write it under `policy`, or name the policy file there",
            ],
        ),
        ("[1]", &["1:1: /: expected a mapping, found an array"]),
        ("a: 1\na: 2", &["2:1: key `a` is given twice"]),
        ("{", &["2:1: while parsing a node, did not find expected node content"]),
    ];
    for (text, expected) in cases {
        assert_eq!(error_lines(text), *expected, "{text}");
    }
}

#[test]
fn a_reference_to_nothing_is_a_mistake_and_nothing_follows_from_it() {
    let text = "
listen: ${NOWHERE}
servers:
  a: {command: x, env: {TOKEN: '${EMPTY}'}, concurrency: '${NONE}'}
  ab: {url: '${file:none}'}
store: ${FILE
";
    assert_eq!(
        error_lines(text),
        [
            "2:1: /listen: the environment variable `NOWHERE` is not set",
            "4:25: /servers/a/env/TOKEN: the environment variable `EMPTY` is empty",
            "4:45: /servers/a/concurrency: the environment variable `NONE` is not set",
            "5:8: /servers/ab/url: cannot read the file `none`: No such file or directory (os error 2)",
            "6:1: /store: `${` has no `}`; write `$${` for the characters themselves",
        ]
    );
}

#[test]
fn mistakes_do_not_quote_what_was_put_in() {
    let text = "
listen: ${GITHUB_TOKEN}
prefix: ${GITHUB_TOKEN}
drain: ${GITHUB_TOKEN}
traces: http://${GITHUB_TOKEN}:x/
servers: {a: {url: '${GITHUB_TOKEN}'}, b: {command: x, start: '${GITHUB_TOKEN}'}}
";
    let told = error_lines(text).join("\n");
    assert!(!told.contains("ghp_github"), "{told}");
    assert_eq!(told.lines().count(), 6, "{told}");
}
