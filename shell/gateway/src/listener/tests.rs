//! Connections over real sockets.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::routing::get;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use toolwarden_settings::{ListenSettings, TlsSettings};

use super::{HttpListener, ListenError, ListenerLimits, ServeSummary, Shutdown, TlsSubject};

const PATIENCE: Duration = Duration::from_secs(10);

fn listen(tls: Option<TlsSettings>) -> ListenSettings {
    ListenSettings {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        tls,
        public_url: None,
        hosts: Vec::new(),
        origins: Vec::new(),
        body_bytes: 1,
        batch: std::num::NonZeroU32::MIN,
        limits: toolwarden_settings::ListenLimits::default(),
    }
}

/// A router that reports what it knows of its peer, responds late, and streams until the end.
fn router(shutdown: &Shutdown) -> Router {
    let shutdown = shutdown.clone();
    Router::new()
        .route(
            "/",
            get(
                async |ConnectInfo(peer): ConnectInfo<SocketAddr>,
                       subject: Option<Extension<TlsSubject>>| {
                    assert!(peer.ip().is_loopback());
                    match subject {
                        Some(Extension(mut subject)) => {
                            assert_eq!(subject.thumbprint.len(), 43);
                            subject.thumbprint.clear();
                            format!("{subject:?}")
                        }
                        None => "anonymous".to_owned(),
                    }
                },
            ),
        )
        .route(
            "/late",
            get(async || {
                sleep(Duration::from_millis(300)).await;
                "late"
            }),
        )
        .route("/never", get(async || std::future::pending::<()>().await))
        .route(
            "/stream",
            get(move || async move {
                Body::new(Stream(Box::pin(async move { shutdown.begun().await })))
            }),
        )
}

/// A body that sends one chunk and then waits for something.
struct Stream(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>);

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0.as_mut().poll(context).map(|()| None)
    }
}

struct Running {
    address: SocketAddr,
    shutdown: Shutdown,
    served: JoinHandle<ServeSummary>,
}

fn start(listener: HttpListener, drain: Duration) -> Running {
    let shutdown = Shutdown::new();
    let address = listener.local_addr();
    let router = router(&shutdown);
    let served = tokio::spawn(listener.serve(router, shutdown.clone(), move || drain));
    Running {
        address,
        shutdown,
        served,
    }
}

impl Running {
    async fn end(self) -> ServeSummary {
        self.shutdown.begin();
        timeout(PATIENCE, self.served).await.unwrap().unwrap()
    }
}

/// Requests a path and returns everything until the other side closes.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    rest(stream).await
}

async fn rest(mut stream: impl AsyncRead + Unpin) -> String {
    let mut answer = Vec::new();
    // A reset is an end, too.
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    drop(read.expect("the connection is closed in time"));
    String::from_utf8(answer).unwrap()
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

#[tokio::test]
async fn requests_are_served_and_end_in_peace() {
    let running = start(HttpListener::bind(&listen(None)).unwrap(), PATIENCE);
    let address = running.address;
    let answer = ask(connect(address).await, "/").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("anonymous"), "{answer}");

    let late = tokio::spawn(ask(connect(address).await, "/late"));
    let stream = tokio::spawn(ask(connect(address).await, "/stream"));
    let idle = connect(address).await;
    sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 0
        }
    );
    assert!(started.elapsed() < PATIENCE / 2);
    assert!(late.await.unwrap().ends_with("late"));
    assert!(stream.await.unwrap().ends_with("0\r\n\r\n"));
    assert_eq!(rest(idle).await, "");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_that_crosses_the_end_is_answered() {
    let running = start(HttpListener::bind(&listen(None)).unwrap(), PATIENCE);
    let new = connect(running.address).await;
    // Until the listener has taken the connection.
    sleep(Duration::from_millis(50)).await;
    running.shutdown.begin();
    sleep(Duration::from_millis(50)).await;
    let answer = ask(new, "/").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 0
        }
    );
}

#[tokio::test]
async fn what_does_not_end_is_cut() {
    let drain = Duration::from_millis(200);
    let running = start(HttpListener::bind(&listen(None)).unwrap(), drain);
    let hanging = tokio::spawn(ask(connect(running.address).await, "/never"));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 1
        }
    );
    assert_eq!(hanging.await.unwrap(), "");
}

#[tokio::test]
async fn slow_and_large_heads_are_dropped() {
    let limits = ListenerLimits {
        first_request: Duration::from_millis(300),
        next_request: Duration::from_millis(300),
        head_bytes: 1_000,
        ..ListenerLimits::default()
    };
    let listener = HttpListener::bind_with(&listen(None), limits).unwrap();
    let running = start(listener, PATIENCE);

    let silent = connect(running.address).await;
    let mut dripping = connect(running.address).await;
    dripping.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut second = connect(running.address).await;
    let first = b"GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTT";
    second.write_all(first).await.unwrap();
    let started = Instant::now();
    assert_eq!(rest(silent).await, "");
    assert_eq!(rest(dripping).await, "");
    assert!(rest(second).await.contains("anonymous"));
    let waited = started.elapsed();
    assert!(waited < Duration::from_secs(3), "{waited:?}");

    // The timeout of the head does not apply to the processing of a request.
    let answer = ask(connect(running.address).await, "/late").await;
    assert!(answer.ends_with("late"), "{answer}");

    let mut large = connect(running.address).await;
    let head = format!(
        "GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
        "y".repeat(2_000)
    );
    large.write_all(head.as_bytes()).await.unwrap();
    let answer = rest(large).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 0
        }
    );
}

/// A router whose requests count as authenticated.
fn authenticating(shutdown: &Shutdown) -> Router {
    let slot = async |Extension(slot): Extension<Arc<super::ConnectionSlot>>| {
        assert!(slot.authenticate(&"ada".into()));
        "known"
    };
    router(shutdown).route("/in", get(slot))
}

#[tokio::test]
async fn silent_connections_make_room_for_others() {
    let limits = ListenerLimits {
        connections: 40,
        unauthenticated: 20,
        unauthenticated_per_address: 20,
        ..ListenerLimits::default()
    };
    let listener = HttpListener::bind_with(&listen(None), limits).unwrap();
    let shutdown = Shutdown::new();
    let address = listener.local_addr();
    let routes = authenticating(&shutdown);
    let served = tokio::spawn(listener.serve(routes, shutdown.clone(), || PATIENCE));
    // An authenticated agent keeps its connection, whatever other connections arrive.
    let mut agent = connect(address).await;
    let request = b"GET /in HTTP/1.1\r\nhost: x\r\n\r\n";
    agent.write_all(request).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = agent.read(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).ends_with("known"));
    let mut silent = Vec::new();
    for _ in 0..2_000 {
        silent.push(connect(address).await);
    }
    agent.write_all(request).await.unwrap();
    let read = timeout(PATIENCE, agent.read(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).ends_with("known"));
    let answer = ask(connect(address).await, "/in").await;
    assert!(answer.ends_with("known"), "{answer}");
    // The oldest of the silent ones were closed for newer ones.
    assert_eq!(rest(silent.swap_remove(0)).await, "");
    drop((silent, agent));
    shutdown.begin();
    timeout(PATIENCE, served).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_has_to_be_authenticated_in_time() {
    let limits = ListenerLimits {
        authenticate: Duration::from_millis(500),
        first_request: Duration::from_millis(500),
        ..ListenerLimits::default()
    };
    let listener = HttpListener::bind_with(&listen(None), limits).unwrap();
    let shutdown = Shutdown::new();
    let address = listener.local_addr();
    let routes = authenticating(&shutdown);
    let served = tokio::spawn(listener.serve(routes, shutdown.clone(), || PATIENCE));
    let mut stranger = connect(address).await;
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stranger.write_all(request("/").as_bytes()).await.unwrap();
    let mut agent = connect(address).await;
    agent.write_all(request("/in").as_bytes()).await.unwrap();
    // It is closed although it sent a request, because it is not authenticated.
    assert!(rest(stranger).await.ends_with("anonymous"));
    agent.write_all(request("/").as_bytes()).await.unwrap();
    let mut said = String::new();
    let mut buffer = vec![0; 4096];
    while !said.ends_with("anonymous") {
        let read = timeout(PATIENCE, agent.read(&mut buffer))
            .await
            .unwrap()
            .unwrap();
        assert!(read > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    drop(agent);
    shutdown.begin();
    timeout(PATIENCE, served).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let taken = HttpListener::bind(&listen(None)).unwrap();
    let mut again = listen(None);
    again.address = taken.local_addr();
    let error = HttpListener::bind(&again).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "address in use: another process listens at {}",
            taken.local_addr()
        )
    );
    // An address of a documentation network belongs to no machine.
    again.address = SocketAddr::from(([192, 0, 2, 1], 0));
    let error = HttpListener::bind(&again).unwrap_err();
    assert!(
        matches!(error, ListenError::AddressNotAvailable { .. }),
        "{error}"
    );
}

/// Certificates in files, all from one authority.
struct Pki {
    folder: TempDir,
    authority: Issuer<'static, KeyPair>,
    authority_pem: String,
}

impl Pki {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_pem = params.self_signed(&key).unwrap().pem();
        Self {
            folder: tempfile::tempdir().unwrap(),
            authority: Issuer::new(params, key),
            authority_pem,
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// A certificate and its key.
    fn issue(&self, common_name: Option<&str>, names: Vec<SanType>) -> (String, String) {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// A certificate for the gateway, in files.
    fn settings(&self, client_ca: Option<&str>) -> TlsSettings {
        let (certificate, key) = self.issue(Some("gateway"), vec![dns("localhost")]);
        TlsSettings {
            certificate: self.write("gateway.pem", &certificate),
            key: self.write("gateway.key", &key),
            client_ca: client_ca.map(|pem| self.write("clients.pem", pem)),
        }
    }

    /// Connects over TLS, with or without a certificate of a client.
    async fn connect(
        &self,
        address: SocketAddr,
        client: Option<&(String, String)>,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.authority_pem.as_bytes());
        roots.add(authority.unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connect(address).await;
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

#[tokio::test]
async fn client_certificates_name_the_peer() {
    let (pki, stranger) = (Pki::new(), Pki::new());
    let tls = pki.settings(Some(&pki.authority_pem));
    let running = start(HttpListener::bind(&listen(Some(tls))).unwrap(), PATIENCE);
    let names = vec![
        dns("agent.example"),
        SanType::URI("spiffe://corp/agent".try_into().unwrap()),
        SanType::Rfc822Name("agent@corp.example".try_into().unwrap()),
        SanType::IpAddress([127, 0, 0, 1].into()),
    ];
    let subject = |common_name: Option<&str>, alternatives: &[&str]| {
        let subject = TlsSubject {
            common_name: common_name.map(str::to_owned),
            alternatives: alternatives.iter().map(|&it| it.to_owned()).collect(),
            thumbprint: String::new(),
        };
        format!("{subject:?}")
    };
    let all = [
        "dns:agent.example",
        "uri:spiffe://corp/agent",
        "email:agent@corp.example",
    ];
    for (client, expected) in [
        (None, "anonymous".to_owned()),
        (
            Some(pki.issue(Some("agent-7"), vec![])),
            subject(Some("agent-7"), &[]),
        ),
        (
            Some(pki.issue(Some("Zoë"), names.clone())),
            subject(Some("Zoë"), &all),
        ),
        (Some(pki.issue(None, names)), subject(None, &all)),
    ] {
        let stream = pki.connect(running.address, client.as_ref()).await.unwrap();
        let answer = ask(stream, "/").await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, expected);
    }
    // A certificate of another authority is worse than none. In TLS 1.3 the client learns of it when it
    // reads.
    let forged = stranger.issue(Some("agent-7"), vec![]);
    let answer = match pki.connect(running.address, Some(&forged)).await {
        Ok(mut stream) => {
            drop(stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await);
            rest(stream).await
        }
        Err(_) => String::new(),
    };
    assert_eq!(answer, "");
    // Plain HTTP gets nothing but the end.
    let plain = connect(running.address).await;
    assert!(!ask(plain, "/").await.contains("HTTP"));
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 0
        }
    );
}

#[tokio::test]
async fn a_handshake_that_is_not_made_is_dropped() {
    let pki = Pki::new();
    let limits = ListenerLimits {
        handshake: Duration::from_millis(200),
        ..ListenerLimits::default()
    };
    let tls = pki.settings(None);
    let listener = HttpListener::bind_with(&listen(Some(tls)), limits).unwrap();
    let running = start(listener, PATIENCE);
    let started = Instant::now();
    assert_eq!(rest(connect(running.address).await).await, "");
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 0
        }
    );
}

#[tokio::test]
async fn certificates_are_read_again() {
    let pki = Pki::new();
    let tls = pki.settings(None);
    let listener = HttpListener::bind(&listen(Some(tls.clone()))).unwrap();
    let certificates = listener.certificates().unwrap();
    let running = start(listener, PATIENCE);
    let shown = async || {
        let stream = pki.connect(running.address, None).await.unwrap();
        let (_, session) = stream.get_ref();
        session.peer_certificates().unwrap()[0].to_vec()
    };
    let before = shown().await;
    assert!(!certificates.reload(&tls).unwrap());
    assert_eq!(shown().await, before);

    let renewed = pki.settings(None);
    assert_eq!(renewed, tls);
    assert!(certificates.reload(&tls).unwrap());
    let after = shown().await;
    assert_ne!(after, before);

    // A broken file leaves the good certificate in force.
    fs::write(&tls.certificate, "broken").unwrap();
    let error = certificates.reload(&tls).unwrap_err();
    let path = tls.certificate.display();
    assert_eq!(
        error.to_string(),
        format!("{path} is not PEM with certificates")
    );
    assert_eq!(shown().await, after);
    assert_eq!(
        running.end().await,
        ServeSummary {
            aborted_connections: 0
        }
    );
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let pki = Pki::new();
    let good = pki.settings(None);
    let (_, other_key) = pki.issue(None, vec![]);
    let text = |path: &Path| path.display().to_string();
    let missing = pki.folder.path().join("missing.pem");
    let empty = pki.write("empty.pem", "");
    let other = pki.write("other.key", &other_key);
    let with = |change: &dyn Fn(&mut TlsSettings)| {
        let mut settings = good.clone();
        change(&mut settings);
        HttpListener::bind(&listen(Some(settings)))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        with(&|tls| tls.certificate.clone_from(&missing)),
        format!("{} cannot be read", text(&missing))
    );
    assert_eq!(
        with(&|tls| tls.certificate.clone_from(&empty)),
        format!("{} is not PEM with certificates", text(&empty))
    );
    assert_eq!(
        with(&|tls| tls.key.clone_from(&empty)),
        format!("{} is not PEM with a private key", text(&empty))
    );
    assert_eq!(
        with(&|tls| tls.client_ca = Some(empty.clone())),
        format!("{} is not PEM with certificates", text(&empty))
    );
    assert_eq!(
        with(&|tls| tls.key.clone_from(&other)),
        format!(
            "the certificate {} cannot be used with the key {}",
            text(&good.certificate),
            text(&other)
        )
    );
}
