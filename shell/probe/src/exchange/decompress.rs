//! Bodies that a provider compresses although no compression was requested.

use std::io::Read as _;

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use toolwarden_model::reply::{NotMeasured, TrialFailure};

const GZIP_START: [u8; 2] = [0x1f, 0x8b];

/// The decompressed body, at most `limit` bytes; `None` if it is not compressed.
///
/// # Errors
/// The body cannot be decompressed. Secrets in it cannot be found either, so it must not be kept.
pub(super) fn decompress(
    encoding: Option<&str>,
    body: &[u8],
    limit: usize,
) -> Result<Option<Vec<u8>>, NotMeasured> {
    let encoding = encoding.unwrap_or_default().trim().to_ascii_lowercase();
    let failed = |failure, detail: String| Err(NotMeasured { failure, detail });
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut whole = Vec::new();
    let read = match encoding.as_str() {
        _ if body.starts_with(&GZIP_START) => {
            MultiGzDecoder::new(body).take(most).read_to_end(&mut whole)
        }
        "deflate" => ZlibDecoder::new(body).take(most).read_to_end(&mut whole),
        "" | "identity" | "gzip" | "x-gzip" => return Ok(None),
        other => {
            let detail = format!("the body is compressed with `{other}`, which was not requested");
            return failed(TrialFailure::NotJson, detail);
        }
    };
    if let Err(error) = read {
        let detail = format!("the body is compressed and cannot be read: {error}");
        return failed(TrialFailure::Truncated, detail);
    }
    if whole.len() > limit {
        let detail = format!("the decompressed body has more than {limit} bytes");
        return failed(TrialFailure::TooLarge, detail);
    }
    Ok(Some(whole))
}
