use std::fmt;

use thiserror::Error;

/// A permission that a tool requires, such as `db:read`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission(String);

/// Permissions that are granted or denied: a single one, or a pattern such as `db:*`.
///
/// A `*` at the end stands for one or more parts, elsewhere for exactly one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermissionPattern(String);

/// Why a text is not a permission.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidPermission {
    /// It is blank.
    #[error("a permission must not be blank")]
    Blank,
    /// It has an empty part.
    #[error("`{text}` has an empty part; write `area:verb`")]
    EmptyPart {
        /// The text.
        text: String,
    },
    /// A star is not a whole part.
    #[error("`{text}`: `*` stands for whole parts only, as in `db:*`")]
    PartialStar {
        /// The text.
        text: String,
    },
    /// A tool requires a pattern.
    #[error("`{text}` is a pattern; a tool requires exact permissions, such as `db:read`")]
    Pattern {
        /// The text.
        text: String,
    },
}

impl Permission {
    /// Parses a permission.
    ///
    /// # Errors
    /// The text is blank, has an empty part, or is a pattern.
    pub fn parse(text: &str) -> Result<Self, InvalidPermission> {
        check(text)?;
        if text.contains('*') {
            let text = text.to_owned();
            return Err(InvalidPermission::Pattern { text });
        }
        Ok(Self(text.to_owned()))
    }

    /// The text of the permission.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PermissionPattern {
    /// Parses a permission or a pattern.
    ///
    /// # Errors
    /// The text is blank, has an empty part, or a star that is not a whole part.
    pub fn parse(text: &str) -> Result<Self, InvalidPermission> {
        check(text)?;
        if text
            .split(':')
            .any(|part| part != "*" && part.contains('*'))
        {
            let text = text.to_owned();
            return Err(InvalidPermission::PartialStar { text });
        }
        Ok(Self(text.to_owned()))
    }

    /// The text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern covers a permission.
    #[must_use]
    pub fn covers(&self, permission: &Permission) -> bool {
        let mut wanted = permission.0.split(':');
        let mut parts = self.0.split(':').peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            match wanted.next() {
                None => return false,
                Some(_) if part == "*" && last => return true,
                Some(_) if part == "*" => {}
                Some(name) if name == part => {}
                Some(_) => return false,
            }
        }
        wanted.next().is_none()
    }
}

impl From<Permission> for PermissionPattern {
    fn from(permission: Permission) -> Self {
        Self(permission.0)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(text: &str) -> Result<(), InvalidPermission> {
    if text.trim().is_empty() {
        return Err(InvalidPermission::Blank);
    }
    if text.split(':').any(|part| part.trim().is_empty()) {
        let text = text.to_owned();
        return Err(InvalidPermission::EmptyPart { text });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_whole_parts() {
        let covers = |pattern: &str, right: &str| {
            PermissionPattern::parse(pattern)
                .unwrap()
                .covers(&Permission::parse(right).unwrap())
        };
        assert!(covers("db:read", "db:read"));
        assert!(covers("db:*", "db:read"));
        assert!(covers("db:*", "db:read:rows"));
        assert!(covers("*", "db:read"));
        assert!(covers("*:read", "db:read"));
        assert!(covers("db:*:rows", "db:read:rows"));
        assert!(!covers("db:*", "db"));
        assert!(!covers("*:read", "db:read:rows"));
        assert!(!covers("db:read", "db:read:rows"));
        assert!(!covers("db:*", "dbx:read"));
        assert!(!covers("DB:read", "db:read"));
    }

    #[test]
    fn what_could_be_misread_is_refused() {
        assert!(PermissionPattern::parse("db*").is_err());
        assert!(PermissionPattern::parse("db::read").is_err());
        assert!(PermissionPattern::parse(" ").is_err());
        assert!(Permission::parse("db:*").is_err());
    }
}
