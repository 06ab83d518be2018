//! The secrets of an endpoint. A server may repeat them in its description of itself, which others read.

use toolwarden_secrets::{Secrets, secret_arguments, secret_url_parts};

use crate::endpoint::{Command, Endpoint, ServerUrl};

impl Endpoint {
    /// The secrets of the endpoint.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        match self {
            Self::Command(command) => command.secrets(),
            Self::Url(url) => url.secrets(),
        }
    }
}

impl Command {
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::new(values(&self.env).chain(secret_arguments(&self.args)))
    }
}

impl ServerUrl {
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::new(values(&self.headers).chain(secret_url_parts(&self.url)))
    }
}

fn values(pairs: &[(String, String)]) -> impl Iterator<Item = &str> {
    pairs.iter().map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(args: &[&str], env: &[(&str, &str)]) -> Endpoint {
        let pairs = env
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let Endpoint::Command(mut command) = Endpoint::command_line("x").unwrap() else {
            panic!("no command");
        };
        command.args = args.iter().map(|&arg| arg.to_owned()).collect();
        command.env = pairs.collect();
        Endpoint::Command(command)
    }

    #[test]
    fn variables_of_a_program_are_secrets() {
        let secrets = command(&[], &[("A", "Bearer abcdef"), ("B", "1")]).secrets();
        assert_eq!(secrets.mask("1: abcdef".to_owned()), "1: ***");
    }

    #[test]
    fn secrets_in_arguments_and_urls_are_found() {
        let args = [
            "--port",
            "8080",
            "--token=abcdef1",
            "--api-key",
            "abcdef2",
            "PASSWORD=abcdef3",
            "--verbose",
            "postgres://me:abcdef4@db.example/x",
        ];
        let secrets = command(&args, &[]).secrets();
        let text = "8080 abcdef1 abcdef2 abcdef3 abcdef4 --verbose db.example".to_owned();
        assert_eq!(
            secrets.mask(text),
            "8080 *** *** *** *** --verbose db.example"
        );
        let url = Endpoint::Url(ServerUrl {
            url: "https://me:hunter22@h.example/mcp?api_key=a%2Fb%20c1234&page=overview".to_owned(),
            headers: vec![("Authorization".to_owned(), "Bearer abcdef5".to_owned())],
        });
        let secrets = url.secrets();
        let text = "hunter22 a/b c1234 a%2Fb%20c1234 abcdef5 overview h.example".to_owned();
        assert_eq!(secrets.mask(text), "*** *** *** *** overview h.example");
    }
}
