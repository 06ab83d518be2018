//! The kinds of lists a server has.

/// The extension with which servers offer skills.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// The kind of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
    /// Skills, if the server declares that extension.
    Skills,
}

impl ListKind {
    /// The method that lists them.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Skills => "skills/list",
        }
    }

    /// The member of the result that contains them.
    #[must_use]
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Skills => "skills",
        }
    }

    /// The member of each that names it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources | Self::Skills => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The capability or extension of servers that offer them.
    #[must_use]
    pub const fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
            Self::Skills => SKILLS,
        }
    }

    /// Whether they belong to an extension of the protocol.
    #[must_use]
    pub const fn is_extension(self) -> bool {
        matches!(self, Self::Skills)
    }

    /// Whether they are identified by names, which may be prefixed; the others have addresses, which never change.
    #[must_use]
    pub const fn is_named(self) -> bool {
        matches!(self, Self::Tools | Self::Prompts)
    }
}
