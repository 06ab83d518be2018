//! Runs programs with a time limit.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a program and returns its output, errors last. The exit status is ignored: the suite fails
/// if a scenario fails.
#[expect(clippy::expect_used, reason = "a test cannot run without its programs")]
pub(super) fn output(command: &mut Command, limit: Duration) -> String {
    // Files instead of pipes, because the output is not read while the program runs.
    let out = tempfile::NamedTempFile::new().expect("a file for output");
    let err = tempfile::NamedTempFile::new().expect("a file for errors");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(out.reopen().expect("a file for output"))
        .stderr(err.reopen().expect("a file for errors"))
        .spawn()
        .expect("the program starts");
    let ended = wait(&mut child, limit);
    let text = |file: &tempfile::NamedTempFile| {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let said = format!("{}{}", text(&out), text(&err));
    assert!(ended, "{command:?} did not end within {limit:?}: {said}");
    said
}

/// Ends a program that this process started, and waits until it has exited.
pub(super) fn kill(child: &mut Child) {
    // It may have exited already.
    let _gone = child.kill();
    let _status = child.wait();
}

fn wait(child: &mut Child, limit: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < limit {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(child);
    false
}
