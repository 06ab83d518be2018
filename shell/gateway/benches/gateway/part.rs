//! The roles of this program's processes, and measurements of such a process.

use std::error::Error;
use std::future::Future;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// The clock ticks of `/proc` in a second, on every Linux there is.
const TICKS: f64 = 100.0;
/// How long a process may take to begin.
const BEGIN: Duration = Duration::from_secs(60);
/// A process that used no tick for so long has nothing left to do.
const QUIET: Duration = Duration::from_millis(60);

/// A process that plays a part; it ends with this value.
pub(crate) struct Part {
    child: Child,
    /// Where it answers.
    pub(crate) url: String,
}

impl Part {
    /// Starts this program in a role; it prints its address when it is ready.
    pub(crate) fn start(words: &[&str]) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut url).unwrap();
        assert!(url.starts_with("http"), "{words:?} told no address: {url}");
        let url = url.trim_end().to_owned();
        Self { child, url }
    }

    /// Starts another program that is to answer at an address.
    pub(crate) fn start_other(mut command: Command, port: u16) -> Self {
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let part = Self {
            child,
            url: format!("http://127.0.0.1:{port}/mcp"),
        };
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < BEGIN, "{command:?} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        part
    }

    /// The processor time it used so far.
    pub(crate) fn cpu(&self) -> Duration {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap();
        // The name of the program, in parentheses, may contain spaces.
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        let ticks = rest.split(' ').skip(11).take(2);
        let ticks: u32 = ticks.map(|it| it.parse::<u32>().unwrap()).sum();
        Duration::from_secs_f64(f64::from(ticks) / TICKS)
    }

    /// The processor time it used until it was idle: deferred work counts as well.
    pub(crate) async fn cpu_at_rest(&self) -> Duration {
        let began = Instant::now();
        let mut used = self.cpu();
        loop {
            tokio::time::sleep(QUIET).await;
            let now = self.cpu();
            if now == used || began.elapsed() > Duration::from_secs(5) {
                return now;
            }
            used = now;
        }
    }

    /// The memory it holds, in megabytes.
    pub(crate) fn memory(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kilobytes.parse::<f64>().unwrap() / 1024.0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // It may have ended on its own.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port that is free now.
pub(crate) fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Prints the address of this process, and ends it with its parent.
pub(crate) fn announce(address: SocketAddr) {
    println!("http://{address}/mcp");
    std::io::stdout().flush().unwrap();
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        drop(std::io::stdin().read_to_end(&mut rest));
        std::process::exit(0);
    });
}

/// Serves bare `hyper` on a free port.
pub(crate) async fn serve_with<F, A, B, E>(answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    announce(listener.local_addr().unwrap());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let service = service_fn(answer.clone());
        tokio::spawn(async move {
            let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // Clients leave when they like.
            drop(serving.await);
        });
    }
}
