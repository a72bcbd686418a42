//! Accesses files. A file is written completely or not at all, and only regular files are read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::Builder;

use crate::{Error, Result};

/// Writes `bytes` to the file `path`, completely or not at all. They are first written to a temporary file in the same
/// folder and flushed to the disk. Then that file replaces the old one. At any time a reader sees the old or the new
/// contents, also after a crash.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("report.txt");
/// wengert_nn::write_atomically(&path, b"done")?;
/// assert_eq!(std::fs::read(&path)?, b"done");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the folder is missing or not writable, the disk is full, or `path` is not a regular file. After an error the old
/// file is unchanged.
pub fn write_atomically(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    replace(path, |file| file.write_all(bytes)).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Opens the file `path` for reading, and returns it with its size in bytes.
///
/// Only regular files are opened, so their kind is checked first. A device such as `/dev/zero` never ends, and opening a pipe may wait
/// forever for a writer.
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

/// Replaces the file `path` by a new one that `fill` writes.
fn replace(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // If `path` is a symbolic link, the file to which it points is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("it exists and is not a regular file"));
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = Builder::new();
    builder.prefix(".wengert-").suffix(".tmp");
    #[cfg(unix)]
    {
        // Sets the permissions of an ordinary new file: 0o666 without the bits of the umask. By default a temporary file is accessible only
        // to its owner.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // If this function fails, the temporary file is removed when it is dropped.
    let mut file = builder.tempfile_in(folder).map_err(without_path)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    // The folder contains the new name, so it is flushed too. Some systems cannot open a folder, which is ignored.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Returns the system's error without the path of the temporary file, which the user does not know.
fn without_path(error: io::Error) -> io::Error {
    let system = error.get_ref().and_then(|inner| inner.source()?.downcast_ref::<io::Error>()?.raw_os_error());
    system.map_or(error, io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        write_atomically(&path, b"old").unwrap();
        let full = replace(&path, |file| {
            file.write_all(b"half of the ne")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let error = write_atomically(folder.path(), b"x").unwrap_err();
        assert!(error.to_string().ends_with("it exists and is not a regular file"), "{error}");
        let error = write_atomically(folder.path().join("missing/model"), b"x").unwrap_err();
        assert!(error.to_string().contains("missing/model': No such file"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_equal_a_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("model"), folder.path().join("latest"));
        write_atomically(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let plain = folder.path().join("plain");
        fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }
}
