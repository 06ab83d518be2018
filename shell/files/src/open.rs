use std::fs::{File, FileType};
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long to wait for a writer of a FIFO.
const FIFO_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes that are reserved before a file is read.
const MAX_RESERVED_BYTES: u64 = 1 << 30;
/// The most bytes that are read from a device. A file has an end; a device may not.
const MAX_DEVICE_BYTES: u64 = 64 << 20;

/// A file, FIFO or device opened for reading.
#[derive(Debug)]
pub struct InputFile {
    file: File,
    /// How many bytes may still be read; `None` means no limit.
    remaining: Option<u64>,
}

impl InputFile {
    /// How many bytes to reserve: a buffer that grows while a long file is read takes the memory of the
    /// file twice.
    fn size_hint(&self) -> usize {
        let size = self.file.metadata().map_or(0, |it| it.len());
        usize::try_from(size.min(MAX_RESERVED_BYTES)).unwrap_or_default()
    }
}

impl Read for InputFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if let Some(left) = &mut self.remaining {
            *left = left.checked_sub(read as u64).ok_or_else(|| {
                io::Error::other(format!(
                    "the device gave more than {} MiB and did not end",
                    MAX_DEVICE_BYTES >> 20
                ))
            })?;
        }
        Ok(read)
    }
}

/// Opens a path for reading. Reading always ends: a FIFO has a few seconds to get a writer, and a
/// device has a maximum size.
///
/// # Errors
/// The path cannot be opened, or no program writes to it.
pub fn open(path: &Path) -> io::Result<InputFile> {
    let kind = std::fs::metadata(path)?.file_type();
    let file = if is_fifo(kind) {
        open_with_timeout(path)?
    } else {
        File::open(path)?
    };
    let left = is_device(kind).then_some(MAX_DEVICE_BYTES);
    Ok(InputFile {
        file,
        remaining: left,
    })
}

/// Reads a file as text through [`open`].
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut file = open(path)?;
    let mut text = String::new();
    text.try_reserve_exact(file.size_hint())?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Reads the bytes of a file through [`open`].
///
/// # Errors
/// The file cannot be read.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(file.size_hint())?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opening a FIFO blocks until a writer appears, and only the end of the process can interrupt it,
/// so a separate thread does it.
fn open_with_timeout(path: &Path) -> io::Result<File> {
    let (sender, opened) = mpsc::channel();
    let path = path.to_owned();
    std::thread::Builder::new()
        .name("open-fifo".to_owned())
        .spawn(move || {
            let result = File::open(path);
            // Without a receiver the wait timed out, and the file is closed again.
            drop(sender.send(result));
        })?;
    opened.recv_timeout(FIFO_TIMEOUT).unwrap_or_else(|_| {
        let message = format!(
            "no program wrote to it within {} seconds",
            FIFO_TIMEOUT.as_secs()
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}

#[cfg(unix)]
fn is_fifo(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(unix)]
fn is_device(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_fifo(_: FileType) -> bool {
    false
}

#[cfg(not(unix))]
fn is_device(_: FileType) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_never_ends_ends_by_a_limit() {
        let error = read_bytes(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the device gave more than 64 MiB and did not end"
        );
        assert_eq!(read_to_string(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn a_file_is_read_into_memory_of_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let text = "text ".repeat(100_000);
        std::fs::write(&path, &text).unwrap();
        let read = read_to_string(&path).unwrap();
        assert_eq!((read.capacity(), read == text), (text.len(), true));
        assert_eq!(read_bytes(&path).unwrap().capacity(), text.len());
    }

    #[test]
    fn a_fifo_without_a_writer_ends_by_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = read_to_string(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), "no program wrote to it within 5 seconds");
    }

    #[test]
    fn a_fifo_with_a_writer_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, "[]").unwrap()
        });
        assert_eq!(read_to_string(&path).unwrap(), "[]");
        writer.join().unwrap();
    }
}
