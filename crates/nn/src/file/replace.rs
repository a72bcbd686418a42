//! The replacement of a file in steps. After each step the path has its old or its new contents.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::calls::{Call, call, write_all};
use super::leftovers::{create_temporary, remove_leftovers};
use crate::{Error, Result};

/// The largest number of links in a chain of symbolic links, as in Linux.
const MAX_LINKS: usize = 40;

/// Replaces the file `path` by a new one that contains `bytes`. After an error, the old file is unchanged.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    try_replace(path, bytes).map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn try_replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = follow_links(path)?;
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(io::Error::other("it exists and is not a regular file"));
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    remove_leftovers(folder, &target);
    let (temporary, mut file) = create_temporary(folder, &target)?;
    let replaced = copy_permissions(&file, old.as_ref())
        .and_then(|()| write_all(&mut file, bytes))
        .and_then(|()| call(Call::Sync, || file.sync_all()))
        .and_then(|()| call(Call::Rename, || fs::rename(&temporary, &target)));
    if let Err(error) = replaced {
        // If the temporary file cannot be removed either, a later write removes it.
        let _ = call(Call::Remove, || fs::remove_file(&temporary));
        return Err(error);
    }
    // The folder stores the name of the new file, so the folder is flushed to the disk too. Some systems cannot open or flush a folder. The
    // new file has already replaced the old one, so a failure here is not an error.
    let _ = call(Call::SyncFolder, || File::open(folder)?.sync_all());
    Ok(())
}

/// Gives `file` the permissions of the file that it replaces, which has the metadata `old`. So the new contents are not more public than the
/// old contents.
#[cfg(unix)]
fn copy_permissions(file: &File, old: Option<&fs::Metadata>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = |metadata: &fs::Metadata| metadata.permissions().mode() & 0o777;
    match old.map(mode) {
        // Permissions are only set if they differ, because some file systems, on which all files have the same permissions, cannot set them.
        Some(old) if old != mode(&file.metadata()?) => file.set_permissions(fs::Permissions::from_mode(old)),
        _ => Ok(()),
    }
}

/// Does nothing: on this system, the permissions of a file come from its folder.
#[cfg(not(unix))]
fn copy_permissions(_: &File, _: Option<&fs::Metadata>) -> io::Result<()> {
    Ok(())
}

/// Returns the path of the file to replace. A symbolic link is kept, and the file that it points to is replaced or, if
/// it does not exist, created. A chain of too many links is an error.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let error = match fs::canonicalize(path) {
        Ok(target) => return Ok(target),
        Err(error) => error,
    };
    let mut target = path.to_owned();
    // After the last link, the loop reads the path at the end of the chain once more, which is not a link.
    for _ in 0..=MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(error)
}
