//! HMAC-SHA-256 signatures in the encodings that receivers expect.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{HMAC_SHA256, Key, sign};

/// In lower-case hex.
pub(super) fn hmac_hex(key: &[u8], data: &[u8]) -> String {
    let tag = sign(&Key::new(HMAC_SHA256, key), data);
    tag.as_ref().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        write!(hex, "{byte:02x}").unwrap_or_default();
        hex
    })
}

/// In base 64.
pub(super) fn hmac_base64(key: &[u8], data: &[u8]) -> String {
    STANDARD.encode(sign(&Key::new(HMAC_SHA256, key), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn signatures_are_those_of_the_rfc() {
        assert_eq!(
            hmac_hex(b"Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hmac_base64(b"Jefe", b"what do ya want for nothing?"),
            "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM="
        );
    }
}
