//! Mail to a real server, aiosmtpd from PyPI.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwarden_notify::{DeliveryError, Notifier};
use toolwarden_settings::{AlertChannel, AlertTarget, SmtpSecurity};
use toolwarden_testkit::{Registry, installed};

use super::{notice, options, target, wait_until_idle};

const SERVER: &str = include_str!("mail_server.py");

struct MailServer {
    child: Child,
    lines: BufReader<ChildStdout>,
    folder: TempDir,
    port: u64,
}

impl MailServer {
    /// `None` if the server is not available here.
    fn start(mode: &str, way: &str) -> Option<Self> {
        let programs = installed(Registry::PyPi, &["aiosmtpd==1.4.6", "trustme==1.2.1"])?;
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(programs.join("python"))
            .args(["-", mode, way])
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(SERVER.as_bytes()).unwrap();
        drop(input);
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self {
            child,
            lines,
            folder,
            port: 0,
        };
        server.port = server.next()["port"].as_u64().unwrap();
        Some(server)
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.port)
    }

    fn target(&self, security: SmtpSecurity, password: &str) -> AlertTarget {
        target(
            "mail",
            AlertChannel::Smtp {
                server: self.host(),
                security,
                credentials: Some(("warden".to_owned(), password.to_owned())),
                from: "Toolwarden <warden@example.com>".to_owned(),
                to: vec![
                    "ops@example.com".to_owned(),
                    "Ada <ada@example.com>".to_owned(),
                ],
            },
        )
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn a_mail_says_it_all_in_plain_text() {
    for way in ["PLAIN", "LOGIN"] {
        let Some(mut server) = MailServer::start("plain", way) else {
            return;
        };
        let targets = [server.target(SmtpSecurity::None, "right")];
        let notifier = Notifier::open(options(&targets)).unwrap();
        notifier.send(notice("n-1"));
        let status = wait_until_idle(&notifier).await;
        assert_eq!(status.targets[0].delivered, 1, "{status:?}");
        let body = [
            "Severity: high",
            "Kind:     drift",
            "Server:   browser",
            "Tool:     cl*ck\\u{202e}",
            "Time:     2026-11-16T09:59:58Z",
            "Notice:   n-1",
            "",
            "Was: a & b",
            "# Now: [free](http://evil.example) <@all>\\u{1b}",
            "",
            "https://warden.example/alerts?id=1&x=%282%29",
            "",
        ];
        let expected = json!({
            "from": "warden@example.com",
            "to": ["ops@example.com", "ada@example.com"],
            "auth": way,
            "tls": false,
            "headers": [
                ["From", "Toolwarden <warden@example.com>"],
                ["Subject", "[high] Toolwarden: tool `click` <!channel> drifted"],
                ["Message-ID", "<4f77b20f5202a17caa06709d63dd49e4b5f62fc6c6ef520abb521ddc07769a4b@toolwarden>"],
                ["Date", "Mon, 16 Nov 2026 10:00:00 +0000"],
                ["Auto-Submitted", "auto-generated"],
                ["Content-Type", "text/plain; charset=utf-8"],
                ["To", "ops@example.com, Ada <ada@example.com>"],
                ["Content-Transfer-Encoding", "7bit"],
            ],
            "body": body.join("\r\n"),
        });
        assert_eq!(server.next(), expected);
    }
}

#[tokio::test]
async fn what_a_mail_server_refuses_is_tried_again_only_if_it_passes() {
    let Some(server) = MailServer::start("plain", "PLAIN") else {
        return;
    };
    let notifier = Notifier::open(options(&[server.target(SmtpSecurity::None, "wr0ng")])).unwrap();
    let tested = notifier.test(None).await.unwrap();
    let Err(DeliveryError::Mail {
        host,
        code,
        message,
    }) = &tested[0].outcome
    else {
        panic!("{tested:?}");
    };
    assert_eq!((host, code), (&server.host(), &535));
    assert!(
        message.contains("Authentication credentials invalid"),
        "{message}"
    );
    assert!(!tested[0].outcome.as_ref().unwrap_err().is_transient());

    let Some(mut busy) = MailServer::start("busy", "PLAIN") else {
        return;
    };
    let notifier = Notifier::open(options(&[busy.target(SmtpSecurity::None, "right")])).unwrap();
    notifier.send(notice("n-1"));
    let status = wait_until_idle(&notifier).await.targets.remove(0);
    assert_eq!(status.delivered, 1);
    let error = status.last_error.unwrap().error;
    let expected = format!("{} refused the mail with code 451: ", busy.host());
    assert!(
        error.starts_with(&expected) && error.contains("come back later"),
        "{error}"
    );
    assert_eq!(
        busy.next()["to"],
        json!(["ops@example.com", "ada@example.com"])
    );
}

#[tokio::test]
async fn mail_is_encrypted_when_configured() {
    // No authority on this machine vouches for the server.
    for (mode, security) in [
        ("starttls", SmtpSecurity::StartTls),
        ("tls", SmtpSecurity::Tls),
    ] {
        let Some(server) = MailServer::start(mode, "PLAIN") else {
            return;
        };
        let notifier = Notifier::open(options(&[server.target(security, "right")])).unwrap();
        let tested = notifier.test(None).await.unwrap();
        assert!(
            matches!(&tested[0].outcome, Err(DeliveryError::Tls { host, .. }) if *host == server.host()),
            "{tested:?}"
        );
    }
    // A server without STARTTLS gets neither password nor mail.
    let Some(server) = MailServer::start("plain", "PLAIN") else {
        return;
    };
    let targets = [server.target(SmtpSecurity::StartTls, "right")];
    let notifier = Notifier::open(options(&targets)).unwrap();
    let tested = notifier.test(None).await.unwrap();
    let error = tested[0].outcome.clone().unwrap_err();
    assert!(error.to_string().contains("STARTTLS"), "{error}");
}

/// Runs itself again with the mail server's authority among those the system trusts.
#[tokio::test]
async fn mail_arrives_encrypted() {
    const PORT: &str = "TOOLWARDEN_TEST_MAIL_PORT";
    let name = "notify::mail::mail_arrives_encrypted";
    if let Ok(told) = std::env::var(PORT) {
        let (mode, port) = told.split_once(' ').unwrap();
        let security = match mode {
            "tls" => SmtpSecurity::Tls,
            _ => SmtpSecurity::StartTls,
        };
        let channel = AlertChannel::Smtp {
            server: format!("localhost:{port}"),
            security,
            credentials: Some(("warden".to_owned(), "right".to_owned())),
            from: "warden@example.com".to_owned(),
            to: vec!["ops@example.com".to_owned()],
        };
        let notifier = Notifier::open(options(&[target("mail", channel)])).unwrap();
        notifier.send(notice("n-1"));
        let status = wait_until_idle(&notifier).await;
        assert_eq!(status.targets[0].delivered, 1, "{status:?}");
        notifier.close(Duration::from_secs(1)).await;
        return;
    }
    for mode in ["starttls", "tls"] {
        let Some(mut server) = MailServer::start(mode, "PLAIN") else {
            return;
        };
        let again = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(PORT, format!("{mode} {}", server.port))
            .env("SSL_CERT_FILE", server.folder.path().join("ca.pem"))
            .output()
            .unwrap();
        assert!(
            again.status.success(),
            "{}",
            String::from_utf8_lossy(&again.stdout)
        );
        let got = server.next();
        assert_eq!((&got["tls"], &got["auth"]), (&json!(true), &json!("PLAIN")));
    }
}
