use tokio::net::TcpListener;
use toolwarden_model::reply::Mode;
use toolwarden_probe::replay::{Recording, serve};
use toolwarden_probe::{FIXTURES, Provider, capture};

use super::ProbeError;
use super::live::{Interrupt, runtime};
use crate::args::ReplayArgs;
use crate::error::CliError;
use crate::output::{Verdict, print_part};

pub(super) fn run(args: &ReplayArgs) -> Result<Verdict, CliError> {
    let recordings = recordings(args)?;
    runtime()?.block_on(async {
        let address = args.listen;
        let failed = |source| ProbeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let mut interrupt = Interrupt::new()?;
        print_part(&format!("http://{bound}/v1\n"))?;
        let stop = async move {
            interrupt.came().await;
        };
        serve(recordings, listener, stop).await.map_err(failed)?;
        Ok(Verdict::Fine)
    })
}

fn recordings(args: &ReplayArgs) -> Result<Vec<Recording>, ProbeError> {
    let mut recordings = Vec::new();
    for path in &args.captures {
        let captures = capture::read(path)?;
        recordings.extend(captures.iter().flat_map(Recording::of_capture));
    }
    if args.from_fixtures {
        for (name, body) in FIXTURES {
            let provider = Provider::resolve(name, None, None)?;
            let recording = Recording::fixture(
                name,
                provider.wire,
                Mode::Nonstream,
                &provider.model_id,
                body,
            );
            recordings.push(recording);
        }
    }
    Ok(recordings)
}
