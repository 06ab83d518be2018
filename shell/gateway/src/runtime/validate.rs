//! Checks settings and policy together, before the gateway binds an address, opens the store or starts a server.

use toolwarden_guard::ToolPolicy;
use toolwarden_live_guard::LoadedPolicy;
use toolwarden_model::json::Pointer;
use toolwarden_settings::Settings;

use super::StartError;
use crate::identity::{AllowedHosts, Identities, IdentityError};
use crate::listener::ServerCertificates;

/// A mistake in the settings or the policy that keeps a gateway from starting.
#[derive(Debug)]
pub struct StartMistake {
    /// The place of the mistake.
    pub place: MistakePlace,
    /// The mistake.
    pub error: StartError,
}

/// The place of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MistakePlace {
    /// A key of the settings.
    Settings(Pointer),
    /// The entry of a server in the settings.
    Server(String),
    /// A key of the policy.
    Policy(Pointer),
}

impl StartMistake {
    fn in_settings<'a>(
        path: impl IntoIterator<Item = &'a str>,
        error: impl Into<StartError>,
    ) -> Self {
        Self {
            place: MistakePlace::Settings(Pointer::of(path)),
            error: error.into(),
        }
    }
}

/// Every mistake in the settings and the policy for which [`super::RunningGateway`] refuses to start or to reload.
#[must_use]
pub fn validate(settings: &Settings, policy: &LoadedPolicy) -> Vec<StartMistake> {
    let mut found = Vec::new();
    if !settings.identity.can_identify_callers() {
        found.push(StartMistake::in_settings(
            ["identity"],
            StartError::NoCallers,
        ));
    }
    let identity = Identities::mistakes(&settings.identity).into_iter();
    found.extend(identity.map(|(at, error)| StartMistake {
        place: MistakePlace::Settings(at),
        error: error.into(),
    }));
    check_roles(settings, policy, &mut found);
    check_listener(settings, &mut found);
    found.extend(validate_rules(settings, policy));
    found
}

/// Every mistake that concerns a gateway with a single agent as well: it has no callers and no listener.
pub(super) fn validate_rules(settings: &Settings, policy: &LoadedPolicy) -> Vec<StartMistake> {
    let mut found = Vec::new();
    check_defaults(settings, &mut found);
    check_attributes(settings, policy, &mut found);
    found
}

/// The first of these mistakes, as an error.
pub(super) fn refuse_first(found: Vec<StartMistake>) -> Result<(), StartError> {
    match found.into_iter().next() {
        Some(mistake) => Err(mistake.error),
        None => Ok(()),
    }
}

/// Roles that tokens grant must exist in the policy: a misspelled one would grant nothing.
fn check_roles(settings: &Settings, policy: &LoadedPolicy, found: &mut Vec<StartMistake>) {
    for (index, jwt) in settings.identity.jwt.iter().enumerate() {
        let given = jwt.roles.iter().flat_map(|roles| roles.map.iter());
        for (value, roles) in given {
            let unknown = roles.iter().filter(|role| !policy.guard.has_role(role));
            found.extend(unknown.map(|role| StartMistake {
                place: MistakePlace::Settings(Pointer::of(["identity", "jwt"]).index(index)),
                error: StartError::UnknownRole {
                    value: value.clone(),
                    role: role.clone(),
                },
            }));
        }
    }
}

/// Names of the gateway and certificates are checked without binding the address, which may be in use by the
/// gateway that these settings will replace.
fn check_listener(settings: &Settings, found: &mut Vec<StartMistake>) {
    let listen = &settings.listen;
    if let Err(error) = AllowedHosts::new(listen, listen.address) {
        let key = match &error {
            IdentityError::Host { .. } => "hosts",
            IdentityError::Origin { .. } => "origins",
            _ => "public_url",
        };
        found.push(StartMistake::in_settings(["listen", key], error));
    }
    if let Some(Err(error)) = listen.tls.as_ref().map(ServerCertificates::read) {
        found.push(StartMistake::in_settings(["listen", "tls"], error));
    }
}

/// Invalid tool defaults would otherwise show only when a tool is withheld.
fn check_defaults(settings: &Settings, found: &mut Vec<StartMistake>) {
    for server in &settings.servers {
        if let Some(defaults) = &server.tool_defaults
            && let Err(mistakes) = ToolPolicy::read_defaults(defaults)
        {
            let server = server.name.clone();
            found.push(StartMistake {
                place: MistakePlace::Server(server.clone()),
                error: StartError::ToolDefaults { server, mistakes },
            });
        }
    }
}

/// Conditions that could never be evaluated would silently disable their group.
fn check_attributes(settings: &Settings, policy: &LoadedPolicy, found: &mut Vec<StartMistake>) {
    for (attribute, group) in policy.guard.condition_attributes() {
        if !settings.client_attributes.contains(&attribute) {
            found.push(StartMistake {
                place: MistakePlace::Policy(Pointer::of(["groups", group.as_str(), "when"])),
                error: StartError::NoSuchAttribute { group, attribute },
            });
        }
    }
}
