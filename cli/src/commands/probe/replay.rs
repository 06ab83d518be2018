use tokio::net::TcpListener;
use toolwarden_model::reply::StreamMode;
use toolwarden_probe::replay::{RecordedExchange, serve};
use toolwarden_probe::{FIXTURES, Provider, capture};

use super::live_servers::{Interrupt, runtime};
use crate::args::ReplayArgs;
use crate::command_outcome::CommandOutcome;
use crate::error::{CliError, ProbeError};
use crate::output::print_chunk;

pub(super) fn run(args: &ReplayArgs) -> Result<CommandOutcome, CliError> {
    let recordings = recordings(args)?;
    runtime()?.block_on(async {
        let address = args.listen;
        let failed = |source| ProbeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let mut interrupt = Interrupt::new()?;
        print_chunk(&format!("http://{bound}/v1\n"))?;
        let stop = async move {
            interrupt.wait().await;
        };
        serve(recordings, listener, stop).await.map_err(failed)?;
        Ok(CommandOutcome::Pass)
    })
}

fn recordings(args: &ReplayArgs) -> Result<Vec<RecordedExchange>, ProbeError> {
    let mut recordings = Vec::new();
    for path in &args.captures {
        let captures = capture::read(path)?;
        let before = recordings.len();
        recordings.extend(captures.iter().flat_map(RecordedExchange::from_capture));
        if recordings.len() == before {
            return Err(ProbeError::NothingToReplay { path: path.clone() });
        }
    }
    if args.from_fixtures {
        for (name, body) in FIXTURES {
            let provider = Provider::resolve(name, None, None)?;
            let recording = RecordedExchange::from_fixture(
                name,
                provider.wire,
                StreamMode::Nonstream,
                &provider.model_id,
                body,
            );
            recordings.push(recording);
        }
    }
    Ok(recordings)
}
