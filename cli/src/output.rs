use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::DocumentFormat;
use crate::ci_escape::escape_json;
use crate::error::CliError;

/// Prints a report, with its colours where they are wanted.
pub(crate) fn print_text(rendered: &str) -> Result<(), CliError> {
    match print_chunk(rendered) {
        // The reader closed the pipe; the result of the command stays the same.
        Err(CliError::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Prints a part of a long output; fails when the reader has closed the pipe.
pub(crate) fn print_chunk(rendered: &str) -> Result<(), CliError> {
    let mut out = anstream::stdout().lock();
    let written = out
        .write_all(rendered.as_bytes())
        .and_then(|()| out.flush());
    written.map_err(|source| CliError::Write {
        place: "standard output".into(),
        source,
    })
}

/// Where results go: standard output, a file that appears whole or not at all, or something that is
/// no file, such as a pipe or a device.
pub(crate) enum OutputFile {
    Stdout(BufWriter<Stdout>),
    File {
        path: PathBuf,
        temporary: BufWriter<NamedTempFile>,
    },
    Stream {
        path: PathBuf,
        stream: BufWriter<File>,
    },
}

impl OutputFile {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, CliError> {
        let Some(path) = path else {
            return Ok(Self::Stdout(BufWriter::new(io::stdout())));
        };
        // The kind alone: the name of a temporary file would only confuse.
        let failed = |error: io::Error| CliError::Write {
            place: path.to_owned(),
            source: error.kind().into(),
        };
        if path
            .metadata()
            .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
        {
            let stream = File::options().write(true).open(path).map_err(failed)?;
            return Ok(Self::Stream {
                path: path.to_owned(),
                stream: BufWriter::new(stream),
            });
        }
        // A link stays a link: what it leads to is replaced.
        let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let temporary = NamedTempFile::new_in(parent).map_err(failed)?;
        Ok(Self::File {
            path: path.to_owned(),
            temporary: BufWriter::new(temporary),
        })
    }

    pub(crate) fn write(&mut self, text: &str) -> Result<(), CliError> {
        let written = match self {
            Self::Stdout(out) => out.write_all(text.as_bytes()),
            Self::File { temporary, .. } => temporary.write_all(text.as_bytes()),
            Self::Stream { stream, .. } => stream.write_all(text.as_bytes()),
        };
        written.map_err(|source| self.write_error(source))
    }

    /// Hands over what was written so far.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        let flushed = match self {
            Self::Stdout(out) => out.flush(),
            Self::File { temporary, .. } => temporary.flush(),
            Self::Stream { stream, .. } => stream.flush(),
        };
        flushed.map_err(|source| self.write_error(source))
    }

    /// Makes the result permanent.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        match self {
            Self::Stdout(mut out) => out.flush().map_err(|source| CliError::Write {
                place: "standard output".into(),
                source,
            }),
            Self::File { path, temporary } => {
                let failed = |source| CliError::Write {
                    place: path.clone(),
                    source,
                };
                let temporary = temporary
                    .into_inner()
                    .map_err(|error| failed(error.into_error()))?;
                temporary.as_file().sync_all().map_err(failed)?;
                set_permissions(&temporary, &path).map_err(failed)?;
                temporary
                    .persist(&path)
                    .map_err(|error| failed(error.error))?;
                Ok(())
            }
            Self::Stream { path, mut stream } => stream.flush().map_err(|source| CliError::Write {
                place: path,
                source,
            }),
        }
    }

    fn write_error(&self, source: io::Error) -> CliError {
        let place = match self {
            Self::Stdout(_) => "standard output".into(),
            Self::File { path, .. } | Self::Stream { path, .. } => path.clone(),
        };
        CliError::Write { place, source }
    }
}

/// Temporary files are private; the result has the permissions of the file it replaces, or those of
/// an ordinary one.
#[cfg(unix)]
fn set_permissions(temporary: &NamedTempFile, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = path.metadata().map_or_else(
        |_| std::fs::Permissions::from_mode(0o644),
        |it| it.permissions(),
    );
    temporary.as_file().set_permissions(permissions)
}

#[cfg(not(unix))]
fn set_permissions(_: &NamedTempFile, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Writes definitions as they come: one as an object, several as an array, or one per line.
pub(crate) struct DefinitionWriter {
    out: OutputFile,
    format: DocumentFormat,
    /// The first definition, until it is known whether it stays the only one.
    first: Option<String>,
    /// Whether an only definition is written without an array around it.
    is_single: bool,
    written: usize,
}

impl DefinitionWriter {
    pub(crate) const fn new(out: OutputFile, format: DocumentFormat) -> Self {
        Self {
            out,
            format,
            first: None,
            is_single: true,
            written: 0,
        }
    }

    pub(crate) fn push(
        &mut self,
        definition: &impl Serialize,
        alone: bool,
    ) -> Result<(), CliError> {
        let render = |compact: bool| {
            if compact {
                serde_json::to_string(definition)
            } else {
                serde_json::to_string_pretty(definition)
            }
        };
        let text = render(self.format == DocumentFormat::Jsonl);
        let text = escape_json(text.map_err(|error| self.out.write_error(error.into()))?);
        if self.format == DocumentFormat::Jsonl {
            self.written += 1;
            return self.out.write(&(text + "\n"));
        }
        if self.written == 0 && self.first.is_none() {
            self.is_single = alone;
            self.first = Some(text);
            return Ok(());
        }
        if let Some(first) = self.first.take() {
            self.write_element(&first)?;
        }
        self.write_element(&text)
    }

    fn write_element(&mut self, text: &str) -> Result<(), CliError> {
        self.out
            .write(if self.written == 0 { "[\n  " } else { ",\n  " })?;
        self.written += 1;
        self.out.write(&text.replace('\n', "\n  "))
    }

    /// Writes what is left and makes the result permanent; returns how many definitions there were.
    pub(crate) fn finish(mut self) -> Result<usize, CliError> {
        let mut count = self.written;
        match self.first.take() {
            Some(only) if self.is_single => {
                count = 1;
                self.out.write(&(only + "\n"))?;
            }
            Some(only) => {
                self.write_element(&only)?;
                count = 1;
                self.out.write("\n]\n")?;
            }
            None if self.format == DocumentFormat::Jsonl => {}
            None if self.written == 0 => self.out.write("[]\n")?,
            None => self.out.write("\n]\n")?,
        }
        self.out.finish()?;
        Ok(count)
    }
}

/// Writes one JSON document whose last member is a list that grows as entries come.
pub(crate) struct ListDocumentWriter {
    out: OutputFile,
    written: usize,
}

impl ListDocumentWriter {
    /// Starts the document with its schema and further members, each a key and its JSON.
    pub(crate) fn open(
        mut out: OutputFile,
        schema: &str,
        members: &[(&str, String)],
        list: &str,
    ) -> Result<Self, CliError> {
        let mut head = format!("{{\n  \"schema\": \"{schema}\"");
        for (key, json) in members {
            head.push_str(&format!(",\n  \"{key}\": {json}"));
        }
        head.push_str(&format!(",\n  \"{list}\": ["));
        out.write(&head)?;
        Ok(Self { out, written: 0 })
    }

    pub(crate) fn push(&mut self, entry: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(entry);
        let text = escape_json(text.map_err(|error| self.out.write_error(error.into()))?);
        self.out.write(if self.written == 0 {
            "\n    "
        } else {
            ",\n    "
        })?;
        self.written += 1;
        self.out.write(&text.replace('\n', "\n    "))
    }

    /// Ends the list, adds further members, and makes the result permanent.
    pub(crate) fn finish(mut self, members: &[(&str, String)]) -> Result<usize, CliError> {
        let mut tail = if self.written == 0 {
            "]".to_owned()
        } else {
            "\n  ]".to_owned()
        };
        for (key, json) in members {
            tail.push_str(&format!(",\n  \"{key}\": {}", json.replace('\n', "\n  ")));
        }
        tail.push_str("\n}\n");
        self.out.write(&tail)?;
        self.out.finish()?;
        Ok(self.written)
    }
}
