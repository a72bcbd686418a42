//! Accesses files. A file is written completely or not at all, and only regular files are read.

mod calls;
mod leftovers;
mod replace;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::Path;

#[cfg(test)]
pub(crate) use calls::{Call, faults};

use crate::{Error, Result};

/// Writes `bytes` to the file `path`, completely or not at all. The bytes are first written to a temporary file in the same folder and
/// flushed to the disk. Then this file replaces the old one. At any time a reader sees the old or the new contents, also after a crash.
///
/// On Unix, the new file has the permissions of the old one, but not its owner.
///
/// A process that is killed may leave a temporary file, `.wengert-….tmp`. The next write to the same path removes this file. After an hour,
/// any write in the folder removes it. Temporary files of running processes stay. Without file locks, as on some network file systems,
/// leftovers stay too.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.txt");
/// wengert::nn::write_atomically(&path, b"done")?;
/// assert_eq!(std::fs::read(&path)?, b"done");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Write`] if the file cannot be written, for example because the folder is missing or not writable, the disk
/// is full, or `path` is not a regular file. After an error the old file is unchanged.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    replace::replace(path.as_ref(), bytes)
}

/// Opens the file `path` for reading, and returns it with its size in bytes.
///
/// The kind of the file is checked before it is opened, and only regular files are opened. A device such as `/dev/zero` never ends, and
/// opening a pipe may wait forever for a writer.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let open = || {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok((File::open(path)?, metadata.len()))
    };
    open().map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// Returns true if `path` exists. A link exists even if it points to a missing file.
///
/// # Errors
///
/// If the system cannot tell, for example because a folder is not accessible: [`Error::Read`].
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
    }
}
