//! The cost of the gateway compared with the server itself, a bare HTTP hop and other proxies, all on loopback and
//! in one run. Servers, hop and gateway are processes of this program, so that their processor time can be measured
//! separately.
//!
//! `-- --quick` takes a tenth of the time; `-- matrix`, `stateless`, `tools`, `sessions` or `idle` takes
//! one part; `-- --no-peers` leaves the Python programs out. `-- load <url> <prefix> <clients> <bytes>
//! <seconds>` calls a program that runs already, for a profiler.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::exit,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark prints, and stops where something is wrong"
)]

mod bytes_body;
mod echo;
mod hop;
mod load;
mod measure;
mod part;
mod peers;
mod report;
mod warden;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use echo::Echo;
use load::{ClientPool, LoadCalls};
use measure::{LoadProfile, Measurements, Subject, by_turns, median};
use part::Part;
use report::{Targets, beside, growth};
use warden::{PREFIX, Setup};

const PAYLOADS: [(&str, usize); 2] = [("1 KB", 1_000), ("100 KB", 100_000)];
const CLIENTS: [usize; 3] = [1, 32, 256];
/// How many clients call where only one number is measured.
const SOME: usize = 32;

const DIRECT: &str = "nothing (the server)";
const HOP: &str = "bare hyper hop";
const ASYNC: &str = "gateway, audit async";
const GROUP: &str = "gateway, audit group";

/// The one of the `toolwarden` program. The hop has it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["echo", era, tools] => on_all(Echo::new(*era == "stateless", count(tools)).serve()),
        ["echo-lines", tools] => Echo::new(false, count(tools)).serve_lines(),
        ["hop", url] => on_all(hop::serve(url.parse().unwrap())),
        ["gateway", folder] => on_all(warden::serve(Path::new(folder))),
        ["load", url, prefix, clients, bytes, seconds] => {
            on_one(load(url, prefix, clients, bytes, seconds));
        }
        words => on_one(Run::new(words).all()),
    }
}

fn count(word: &str) -> usize {
    word.parse().unwrap()
}

/// Calls a program that runs already, to be looked at with a profiler meanwhile.
async fn load(url: &str, prefix: &str, clients: &str, bytes: &str, seconds: &str) {
    let calls = Arc::new(LoadCalls::new(prefix, 1, count(bytes), false));
    let mut crowd = ClientPool::open(url, count(clients), 1).await;
    crowd.until_ready(&calls).await;
    let time = Duration::from_secs(seconds.parse().unwrap());
    let ran = crowd.run(&calls, time).await;
    println!("{} calls, p50 {:.3} ms", ran.calls(), ran.within(0.5));
}

/// Runs a part on all processors, as the command does.
fn on_all(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().build().unwrap().block_on(work);
}

fn on_one(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work);
}

/// What is measured, and how long.
struct Run {
    /// Nothing is everything.
    only: Vec<String>,
    peers: bool,
    pace: LoadProfile,
    targets: Targets,
}

/// A gateway and its folder.
struct Gateway {
    part: Part,
    _folder: TempDir,
}

impl Gateway {
    fn start(setup: &Setup<'_>) -> Self {
        // The log goes to a disk, as in use, and not to a file system in memory.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        setup.write(folder.path());
        let path = folder.path().to_str().unwrap();
        Self {
            part: Part::start(&["gateway", path]),
            _folder: folder,
        }
    }

    fn before(server: &Part, durability: &str) -> Self {
        Self::start(&Setup {
            server: Some(&server.url),
            durability,
            sessions: "isolated",
        })
    }
}

impl Run {
    fn new(words: &[&str]) -> Self {
        let is_quick = words.contains(&"--quick");
        let only = words.iter().filter(|word| !word.starts_with('-'));
        Self {
            only: only.map(|&word| word.to_owned()).collect(),
            peers: !words.contains(&"--no-peers"),
            pace: if is_quick {
                LoadProfile {
                    rounds: 1,
                    time: Duration::from_millis(300),
                    warm: Duration::from_millis(100),
                }
            } else {
                LoadProfile {
                    rounds: 3,
                    time: Duration::from_millis(600),
                    warm: Duration::from_millis(200),
                }
            },
            targets: Targets::default(),
        }
    }

    fn takes(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }

    async fn all(mut self) {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap();
        println!(
            "gateway: load of the machine before the run {}",
            load.trim_end()
        );
        if self.takes("matrix") {
            self.matrix().await;
        }
        if self.takes("stateless") {
            self.stateless().await;
        }
        if self.takes("tools") {
            self.tools().await;
        }
        if self.takes("sessions") {
            self.sessions().await;
        }
        if self.takes("idle") {
            self.idle().await;
        }
        println!();
        self.targets.print();
    }

    /// Every payload and number of clients.
    async fn matrix(&mut self) {
        let server = Part::start(&["echo", "handshake", "1"]);
        let hop = Part::start(&["hop", &server.url]);
        let queued = Gateway::before(&server, "async");
        let durable = Gateway::before(&server, "group");
        let fastmcp = self.peers.then(|| peers::fastmcp(&server.url)).flatten();
        let mcp_proxy = self.peers.then(peers::mcp_proxy).flatten();
        for (payload, bytes) in PAYLOADS {
            let plain = Arc::new(LoadCalls::new("", 1, bytes, false));
            let prefixed = Arc::new(LoadCalls::new(PREFIX, 1, bytes, false));
            let ours = [
                (DIRECT, &server, &plain),
                (HOP, &hop, &plain),
                (ASYNC, &queued.part, &prefixed),
                (GROUP, &durable.part, &prefixed),
            ];
            let others = [(peers::FASTMCP, &fastmcp), (peers::MCP_PROXY, &mcp_proxy)];
            let others = others
                .iter()
                .filter_map(|(name, part)| Some((*name, part.as_ref()?, &plain)));
            let others: Vec<_> = others.collect();
            for clients in CLIENTS {
                let mut measured = measure(&ours, clients, self.pace).await;
                // They are slow, and their results are far from anything that matters.
                let once = LoadProfile {
                    rounds: 1,
                    warm: Duration::ZERO,
                    ..self.pace
                };
                for other in &others {
                    measured.extend(measure(&[*other], clients, once).await);
                }
                beside(&format!("{payload}, {clients} clients"), &measured);
                self.hold(payload, clients, &measured);
            }
        }
    }

    /// Compares the results with the targets.
    fn hold(&mut self, payload: &str, clients: usize, measured: &[(&str, Measurements)]) {
        let of = |wanted: &str| measured.iter().find(|(name, _)| *name == wanted);
        let all = [DIRECT, HOP, ASYNC, GROUP].map(|name| of(name).unwrap().1);
        let [direct, hop, queued, durable] = all;
        let at = format!("{payload}, {clients} clients");
        let targets = &mut self.targets;
        targets.at_most(
            format!("CPU of the hop's, async, {at}"),
            queued.cpu / hop.cpu,
            1.6,
        );
        if clients == 1 {
            let added = queued.p50 - direct.p50;
            targets.at_most(format!("added p50 in ms, async, {at}"), added, 0.1);
            let added = durable.p50 - direct.p50;
            targets.at_most(format!("added p50 in ms, group, {at}"), added, 2.0);
        }
        if let Some((_, fastmcp)) = of(peers::FASTMCP) {
            let times = queued.rate / fastmcp.rate;
            targets.at_least(format!("calls/s of FastMCP's, async, {at}"), times, 50.0);
        }
    }

    /// The era without sessions, on both sides.
    async fn stateless(&self) {
        let server = Part::start(&["echo", "stateless", "1"]);
        let hop = Part::start(&["hop", &server.url]);
        let gateway = Gateway::before(&server, "async");
        let plain = Arc::new(LoadCalls::new("", 1, 1_000, true));
        let prefixed = Arc::new(LoadCalls::new(PREFIX, 1, 1_000, true));
        let mut subjects = Vec::new();
        for (name, part, calls) in [
            (DIRECT, &server, &plain),
            (HOP, &hop, &plain),
            (ASYNC, &gateway.part, &prefixed),
        ] {
            subjects.push(Subject {
                name,
                part,
                crowd: ClientPool::open_stateless(&part.url, SOME).await,
                calls: Arc::clone(calls),
            });
        }
        let measured = named(&mut subjects, self.pace).await;
        beside(&format!("stateless, 1 KB, {SOME} clients"), &measured);
    }

    /// More and more tools, all of them called by turns.
    async fn tools(&mut self) {
        let numbers = [10, 1_000, 10_000];
        let mut parts = Vec::new();
        for number in numbers {
            let server = Part::start(&["echo", "handshake", &number.to_string()]);
            let gateway = Gateway::before(&server, "async");
            parts.push((server, gateway));
        }
        for (title, in_use) in [
            ("ten of them called", Some(10)),
            ("all of them called", None),
        ] {
            let mut subjects = Vec::new();
            for ((_, gateway), number) in parts.iter().zip(numbers) {
                let in_use = in_use.unwrap_or(number);
                subjects.push(Subject {
                    name: ASYNC,
                    part: &gateway.part,
                    crowd: ClientPool::open(&gateway.part.url, SOME, 1).await,
                    calls: Arc::new(LoadCalls::new(PREFIX, in_use, 1_000, false)),
                });
            }
            let measured = by_turns(&mut subjects, self.pace).await;
            let rows = rows(&numbers, &subjects, &measured);
            growth(&format!("tools, {title}, {SOME} clients, 1 KB"), &rows);
            self.flat(
                &format!("CPU with 10,000 tools of that with 10, {title}"),
                &rows,
            );
        }
    }

    /// More and more sessions, all of them used by turns.
    async fn sessions(&mut self) {
        let numbers: [usize; 3] = [1, 100, 10_000];
        let server = Part::start(&["echo", "handshake", "1"]);
        let gateways: Vec<Gateway> = numbers
            .iter()
            .map(|_| {
                Gateway::start(&Setup {
                    server: Some(&server.url),
                    durability: "async",
                    sessions: "shared",
                })
            })
            .collect();
        let mut subjects = Vec::new();
        for (gateway, number) in gateways.iter().zip(numbers) {
            let url = &gateway.part.url;
            subjects.push(Subject {
                name: ASYNC,
                part: &gateway.part,
                crowd: match number {
                    1 => ClientPool::open_shared(url, SOME).await,
                    number => ClientPool::open(url, SOME, number.div_ceil(SOME)).await,
                },
                calls: Arc::new(LoadCalls::new(PREFIX, 1, 1_000, false)),
            });
        }
        let measured = by_turns(&mut subjects, self.pace).await;
        let rows = rows(&numbers, &subjects, &measured);
        growth(&format!("sessions, {SOME} clients, 1 KB"), &rows);
        self.flat("CPU with 10,000 sessions of that with one", &rows);
    }

    fn flat(&mut self, what: &str, rows: &[(usize, f64, Measurements)]) {
        let (first, last) = (rows[0].2, rows[rows.len() - 1].2);
        self.targets.at_most(what, last.cpu / first.cpu, 1.2);
    }

    /// A gateway without servers: how soon it answers, and what it holds.
    async fn idle(&mut self) {
        let setup = Setup {
            server: None,
            durability: "async",
            sessions: "isolated",
        };
        let (mut starts, mut memory) = (Vec::new(), Vec::new());
        for _ in 0..self.pace.rounds * 3 {
            let began = Instant::now();
            let gateway = Gateway::start(&setup);
            let _crowd = ClientPool::open(&gateway.part.url, 1, 1).await;
            starts.push(began.elapsed().as_secs_f64() * 1e3);
            gateway.part.cpu_at_rest().await;
            memory.push(gateway.part.memory());
        }
        let targets = &mut self.targets;
        targets.at_most(
            "ms from the start to the first session",
            median(starts),
            100.0,
        );
        targets.at_most("MB held without servers", median(memory), 40.0);
    }
}

fn rows(
    numbers: &[usize],
    subjects: &[Subject<'_>],
    measured: &[Measurements],
) -> Vec<(usize, f64, Measurements)> {
    let all = numbers.iter().zip(subjects).zip(measured);
    all.map(|((number, subject), it)| (*number, subject.part.memory(), *it))
        .collect()
}

/// Measures programs in turns with this many clients each.
async fn measure<'p>(
    programs: &[(&'static str, &'p Part, &Arc<LoadCalls>)],
    clients: usize,
    pace: LoadProfile,
) -> Vec<(&'static str, Measurements)> {
    let mut subjects = Vec::new();
    for (name, part, calls) in programs {
        let part: &'p Part = part;
        subjects.push(Subject {
            name,
            part,
            crowd: ClientPool::open(&part.url, clients, 1).await,
            calls: Arc::clone(calls),
        });
    }
    named(&mut subjects, pace).await
}

async fn named(
    subjects: &mut [Subject<'_>],
    pace: LoadProfile,
) -> Vec<(&'static str, Measurements)> {
    let measured = by_turns(subjects, pace).await;
    let names = subjects.iter().map(|subject| subject.name);
    names.zip(measured).collect()
}
