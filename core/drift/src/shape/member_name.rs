use super::string_format::StringFormat;

/// The step that stands for every item of an array.
pub(super) const ITEMS: &str = "[]";
/// The step that stands for every member whose name is data.
pub(super) const MEMBERS: &str = "*";

const MAX_NAME: usize = 64;

/// The step a member is kept under: its name, or `*` where the name looks like data.
///
/// It depends on the name alone. A rule that considered the other members could decide differently when
/// more results arrive, and counts already stored under the name could not be moved.
pub(super) fn path_step(name: &str) -> &str {
    let data = name.len() > MAX_NAME
        || name == ITEMS
        || name
            .bytes()
            .any(|byte| byte.is_ascii_control() || matches!(byte, b'"' | b'\\' | b'@'))
        || looks_like_data(StringFormat::of(name))
        || is_digits_mostly(name)
        || name
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(is_token);
    if data { MEMBERS } else { name }
}

const fn looks_like_data(format: StringFormat) -> bool {
    match format {
        StringFormat::Uuid
        | StringFormat::DateTime
        | StringFormat::Date
        | StringFormat::Integer
        | StringFormat::Number
        | StringFormat::Uri
        | StringFormat::Email
        | StringFormat::Ipv4
        | StringFormat::Hex
        | StringFormat::Base64
        | StringFormat::Json
        | StringFormat::DateTimeFraction
        | StringFormat::DateTimeOffset
        | StringFormat::DateTimeLocal
        | StringFormat::DateTimeSpace
        | StringFormat::DateSlash
        | StringFormat::DateDot
        | StringFormat::DateDash
        | StringFormat::DateNamed
        | StringFormat::Time => true,
        StringFormat::Empty
        | StringFormat::Word
        | StringFormat::Text
        | StringFormat::Ascii
        | StringFormat::Latin
        | StringFormat::Unicode
        | StringFormat::Control => false,
    }
}

/// Phone numbers, times of day, order numbers; `md5` and `line2` are names.
fn is_digits_mostly(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    digits >= 4 && digits * 2 >= name.len()
}

/// A generated run of letters and digits: it switches between the two too often for a written name.
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
            assert_eq!(path_step(name), name);
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
            assert_eq!(path_step(data), MEMBERS, "{data}");
        }
    }
}
