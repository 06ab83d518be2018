//! Runs every target over its seeds and over mutations of them, and checks the table of targets.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test ends where it cannot go on, and says for which input"
)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use toolwarden_fuzz::{TARGETS, Target};
use toolwarden_testkit::corpus_definitions;

/// The mutations of a target, shared by its seeds.
const MUTATIONS: usize = 600;
/// The published definitions that are seeds besides the files.
const DEFINITIONS: usize = 24;
/// The longest published definition that is a seed.
const DEFINITION_BYTES: usize = 4096;

/// A small generator of numbers: the same inputs in every run.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`; 0 if there is none.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }
}

/// Bytes that matter to one of the formats.
const TOKENS: &[&[u8]] = &[
    b"\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b" ",
    b"\t",
    b"-",
    b"0",
    b"1e999",
    b"-0",
    b"0.1e-400",
    b"18446744073709551616",
    b"null",
    b"true",
    b"'",
    b"#",
    b"&a",
    b"*a",
    b"<<: ",
    b"!!str ",
    b"|",
    b"> ",
    b"- ",
    b"---",
    b"%2F",
    b"%",
    b"~1",
    b"$ref",
    b"#/",
    b".",
    b"data: ",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\xf3\xa0\x81\x81",
];

/// One to three changes of a seed.
fn mutated(random: &mut Xorshift, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(3) {
        let at = random.below(data.len() + 1);
        let end = (at + 1 + random.below(16)).min(data.len());
        match random.below(7) {
            0 if at < data.len() => data[at] ^= 1 << random.below(8),
            1 => data.truncate(at),
            2 => drop(data.drain(at..end)),
            3 => {
                let again = data[at..end].to_vec();
                data.splice(at..at, again);
            }
            4 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                data.splice(at..end, other[from..to].to_vec());
            }
            5 => {
                let token = TOKENS[random.below(TOKENS.len())];
                data.splice(at..end, token.to_vec());
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                data.splice(at..at, token.to_vec());
            }
        }
    }
    data
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names of the entries of a folder, sorted, without their extension.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = paths
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names
}

fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let folder = folder("seeds").join(target.name);
    let entries = fs::read_dir(&folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // The order of a folder differs between machines.
    paths.sort_unstable();
    let mut seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty(), "{} has no seeds", folder.display());
    if target.reads_definitions
        && let Some(mut definitions) = corpus_definitions()
    {
        definitions.retain(|definition| definition.text.len() <= DEFINITION_BYTES);
        let step = definitions.len().div_ceil(DEFINITIONS).max(1);
        let chosen = definitions.into_iter().step_by(step);
        seeds.extend(chosen.map(|definition| definition.text.into_bytes()));
    }
    seeds
}

/// Runs a target, and prints the input if its property fails.
fn run(target: &Target, data: &[u8]) {
    if let Err(failure) = catch_unwind(AssertUnwindSafe(|| (target.run)(data))) {
        println!("{}: {}", target.name, data.escape_ascii());
        std::panic::resume_unwind(failure);
    }
}

fn smoke(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = seeds(target);
    run(target, b"");
    for seed in &seeds {
        run(target, seed);
    }
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    for _ in 0..MUTATIONS {
        run(target, &mutated(&mut random, &seeds));
    }
}

/// A test for each target, so that they run in parallel and one failure does not hide another.
macro_rules! smoke_tests {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];

        mod smoke {
            $(#[test]
            fn $name() {
                super::smoke(stringify!($name));
            })*
        }
    };
}

smoke_tests! {
    bearer_token client_certificate client_file condition duration event_stream json lock_file model_reply
    param_headers pointer policy probe_suite raw_object recorded_call result_shape retry_after rpc_message
    schema_comparison schema_document server_address settings snapshot_file text_scan tool_definitions
    tool_document toolwatch_file uri_template watch_config yaml_document
}

#[test]
fn every_target_has_a_test_a_binary_and_seeds() {
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(TESTED, targets);
    assert_eq!(names(&folder("fuzz_targets")), targets);
    assert_eq!(names(&folder("seeds")), targets);
    let manifest: toml::Table = fs::read_to_string(folder("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let binaries = manifest["bin"].as_array().unwrap().iter();
    let binaries: Vec<&str> = binaries.map(|bin| bin["name"].as_str().unwrap()).collect();
    assert_eq!(binaries, targets);
    for name in targets {
        let program = folder("fuzz_targets").join(name).with_extension("rs");
        let program = fs::read_to_string(program).unwrap();
        assert!(
            program.contains(&format!("toolwarden_fuzz::{name}(data)")),
            "{name} runs another target"
        );
    }
}
