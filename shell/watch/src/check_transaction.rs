//! One check of a server: load its pins, judge the listing, record the outcome. If another process
//! changed the pins meanwhile, judge again.

use toolwarden_drift::{Options, RecordedCall};
use toolwarden_store::{ServerKey, Store};

use crate::judge::{CheckOutcome, ServerListing, judge};
use crate::pins::{Pins, PinsError};
use crate::record::{RecordOptions, RecordOutcome, record};

/// The parts of a check that depend on where pins and tools come from.
pub trait CheckSource<'k> {
    /// Why the check fails.
    type Error: From<PinsError>;

    /// Loads the current pins.
    ///
    /// # Errors
    /// The pins cannot be read.
    fn load_pins(&mut self) -> Result<Pins<'k>, Self::Error>;

    /// Reads the observed tools again, because tools that match these pins need not be parsed.
    fn read_listing(&mut self, _pins: &Pins<'k>) {}

    /// The observed tools.
    fn listing(&mut self) -> &mut ServerListing;

    /// Corrects the outcome before it is recorded, or refuses the check.
    ///
    /// # Errors
    /// The check is refused.
    fn review(&mut self, _pins: &Pins<'k>, _judged: &mut CheckOutcome) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A check that no other process overtook.
#[derive(Debug)]
pub struct CompletedCheck<'k> {
    /// The pins that the listing was compared with.
    pub pins: Pins<'k>,
    /// The comparison.
    pub outcome: CheckOutcome,
    /// What was stored; nothing if the pins are those of a lock file.
    pub recorded: RecordOutcome,
}

/// Compares a listing with its pins and records the outcome in the store that the pins come from.
///
/// # Errors
/// The pins cannot be read or written, or the source refuses the check.
pub fn run_check<'k, S: CheckSource<'k>>(
    source: &mut S,
    options: &Options,
    calls: &[RecordedCall],
    recording: &RecordOptions<'_>,
) -> Result<CompletedCheck<'k>, S::Error> {
    loop {
        let pins = source.load_pins()?;
        source.read_listing(&pins);
        let mut outcome = judge(&pins, source.listing(), options, calls)?;
        source.review(&pins, &mut outcome)?;
        let recorded = match pins.store() {
            Some(store) => record(store, &pins, source.listing(), &outcome, recording)?,
            None => RecordOutcome::default(),
        };
        if !recorded.pins_changed {
            return Ok(CompletedCheck {
                pins,
                outcome,
                recorded,
            });
        }
        // The next pins may have another text, so a tool that matched these pins is compared as well.
        source.listing().parse_unchanged(&pins)?;
    }
}

/// Compares a listing with the store and stores the outcome.
///
/// # Errors
/// The store cannot be read or written.
pub fn check(
    store: &Store,
    key: &ServerKey,
    listing: &mut ServerListing,
    options: &Options,
    calls: &[RecordedCall],
    recording: &RecordOptions<'_>,
) -> Result<(CheckOutcome, RecordOutcome), PinsError> {
    let mut source = StoredCheck {
        store,
        key,
        listing,
        wanted: recording.wanted,
    };
    let checked = run_check(&mut source, options, calls, recording)?;
    Ok((checked.outcome, checked.recorded))
}

/// A listing that was read before its check.
struct StoredCheck<'k, 'l> {
    store: &'k Store,
    key: &'l ServerKey,
    listing: &'l mut ServerListing,
    wanted: &'l [String],
}

impl<'k> CheckSource<'k> for StoredCheck<'k, '_> {
    type Error = PinsError;

    fn load_pins(&mut self) -> Result<Pins<'k>, PinsError> {
        if self.wanted.is_empty() {
            return Ok(Pins::from_store(self.store, self.key)?);
        }
        let wanted = self.wanted.iter().map(String::as_str);
        Ok(Pins::from_store_for_tools(self.store, self.key, wanted)?)
    }

    fn listing(&mut self) -> &mut ServerListing {
        self.listing
    }
}
