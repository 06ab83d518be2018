use super::format::Format;

/// The step that stands for every item of an array.
pub(super) const ITEMS: &str = "[]";
/// The step that stands for every member whose name is data.
pub(super) const MEMBERS: &str = "*";

const MAX_NAME: usize = 64;

/// The step a member is kept under: its name, or `*` where the name looks like data.
///
/// It depends on the name alone. A rule that looked at the other members could change its mind when
/// more results arrive, and what had been counted under the name could not be moved.
pub(super) fn step(name: &str) -> &str {
    let data = name.len() > MAX_NAME
        || name == ITEMS
        || name
            .bytes()
            .any(|byte| byte.is_ascii_control() || matches!(byte, b'"' | b'\\' | b'@'))
        || looks_like_data(Format::of(name))
        || is_digits_mostly(name)
        || name
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(is_token);
    if data { MEMBERS } else { name }
}

const fn looks_like_data(format: Format) -> bool {
    match format {
        Format::Uuid
        | Format::DateTime
        | Format::Date
        | Format::Integer
        | Format::Number
        | Format::Uri
        | Format::Email
        | Format::Ipv4
        | Format::Hex
        | Format::Base64
        | Format::Json
        | Format::DateTimeFraction
        | Format::DateTimeOffset
        | Format::DateTimeLocal
        | Format::DateTimeSpace
        | Format::DateSlash
        | Format::DateDot
        | Format::DateDash
        | Format::DateNamed
        | Format::Time => true,
        Format::Empty
        | Format::Word
        | Format::Text
        | Format::Ascii
        | Format::Latin
        | Format::Unicode
        | Format::Control => false,
    }
}

/// Phone numbers, times of day, order numbers; `md5` and `line2` are names.
fn is_digits_mostly(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    digits >= 4 && digits * 2 >= name.len()
}

/// A run of letters and digits that nobody spelled: it changes between the two too often.
fn is_token(run: &str) -> bool {
    let bytes = run.as_bytes();
    let changes = bytes
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.is_ascii_digit() != b.is_ascii_digit()))
        .count();
    let hex = bytes.len() >= 8
        && bytes.iter().all(u8::is_ascii_hexdigit)
        && bytes.iter().any(u8::is_ascii_digit);
    hex || (bytes.len() >= 12 && changes >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_and_data_folds() {
        for name in [
            "id",
            "created_at",
            "md5",
            "line2",
            "sha256",
            "First name",
            "größe",
            "",
            "x-rate-limit",
            "oauth2ClientSecretKey",
            "ipv4_address",
        ] {
            assert_eq!(step(name), name);
        }
        let long = "n".repeat(65);
        for data in [
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "2026-11-16",
            "2026-11-16T05:01:35Z",
            "12345",
            "7",
            "a@b.org",
            "@user",
            "+1-555-0100",
            "deadbeef01",
            "commit_9fceb02d0ae598e95dc970b74767f19372d61af8",
            "user_x7f9k2m4q8z1",
            "10.0.0.1",
            "a\"b",
            "a\u{0}b",
            "[]",
            "*",
            long.as_str(),
        ] {
            assert_eq!(step(data), MEMBERS, "{data}");
        }
    }
}
