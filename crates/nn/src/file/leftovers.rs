//! Temporary files: their names, and the removal of files that killed processes left.
//!
//! A process holds a lock on its temporary file until it has renamed it. The system releases the locks of a process that ends. A temporary
//! file without a lock is therefore a leftover. Names are random and practically never occur again. If the temporary file of a running process is
//! removed nevertheless, the write of this process fails, and the old file stays.

use std::fs::{self, DirEntry, File, TryLockError};
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::calls::{Call, call};

/// The beginning of the names of all temporary files.
pub(super) const PREFIX: &str = ".wengert-";

/// The end of the names of all temporary files.
pub(super) const SUFFIX: &str = ".tmp";

/// The number of random names that are tried for a new temporary file.
const MAX_ATTEMPTS: usize = 100;

/// The age after which a temporary file without a lock counts as a leftover of a killed process, if it belongs to another target. A file
/// of the current target counts at any age. On some network file systems, other machines do not see the lock. The limit assumes that a
/// write by another machine takes less than an hour.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// Creates a temporary file in `folder` for the contents of `target`, and locks the file if the file system has locks.
/// Returns its path and the open file, or an error if no file can be created.
pub(super) fn create_temporary(folder: &Path, target: &Path) -> io::Result<(PathBuf, File)> {
    let prefix = prefix(target);
    for _ in 0..MAX_ATTEMPTS {
        let path = folder.join(format!("{prefix}{:016x}{SUFFIX}", RandomState::new().hash_one(())));
        match call(Call::Create, || File::options().write(true).create_new(true).open(&path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            // Before this process locks the new file, another process may take the file for a leftover, and lock or remove it. Then the
            // loop creates another file. On a file system without locks no process removes the file, because a removal needs the lock.
            Ok(file) if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && path.exists() => {
                return Ok((path, file));
            }
            Ok(_) => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no name for a temporary file is free"))
}

/// Removes temporary files that killed processes left in `folder`: the files that were to replace `target`, and all files that are older than
/// [`ABANDONED_AFTER`]. Files that are locked or cannot be removed stay.
pub(super) fn remove_leftovers(folder: &Path, target: &Path) {
    let prefix = prefix(target);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| may_be_leftover(entry, &prefix)) {
        let path = entry.path();
        // This process holds the lock on the file while it removes the file. So the process that created the file cannot lock it in
        // between.
        if let Ok(file) = File::options().read(true).write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = call(Call::Remove, || fs::remove_file(&path));
        }
    }
}

/// Returns true for a temporary file whose name begins with `prefix`, and for every other temporary file that is older than [`ABANDONED_AFTER`].
fn may_be_leftover(entry: &DirEntry, prefix: &str) -> bool {
    let name = entry.file_name();
    let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)) else {
        return false;
    };
    let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
    entry.file_type().is_ok_and(|kind| kind.is_file())
        && (name.starts_with(prefix) || age().is_some_and(|age| age > ABANDONED_AFTER))
}

/// Returns the beginning of the names of the temporary files for `target`.
fn prefix(target: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    target.file_name().hash(&mut hasher);
    format!("{PREFIX}{:016x}-", hasher.finish())
}
