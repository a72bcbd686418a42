use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::calls::Call;
use super::calls::faults::{Plan, with};
use super::leftovers::{PREFIX, SUFFIX, create_temporary};
use super::*;

/// Returns the number of files in a folder.
fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// The system calls of one [`write_atomically`], if the folder has no temporary files of killed processes.
const CALLS: [Call; 5] = [Call::Create, Call::Write, Call::Sync, Call::Rename, Call::SyncFolder];

#[test]
fn the_contents_are_flushed_before_they_get_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let (result, calls) = with(Plan::Healthy, || write_atomically(folder.path().join("model"), b"new"));
    assert!(result.is_ok());
    assert_eq!(calls, CALLS);
}

#[test]
fn every_failed_call_keeps_the_old_file_or_writes_the_new_one() {
    for kind in [ErrorKind::StorageFull, ErrorKind::PermissionDenied, ErrorKind::Other] {
        for (at, call) in CALLS.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("model");
            write_atomically(&path, b"the old contents").unwrap();
            let (result, _) = with(Plan::Fail(at, kind), || write_atomically(&path, b"new contents"));
            // Some systems cannot flush a folder, so a failure of this call is not an error of the write.
            assert_eq!(result.is_ok(), call == Call::SyncFolder, "{call:?}");
            let expected = if result.is_ok() { &b"new contents"[..] } else { b"the old contents" };
            assert_eq!(fs::read(&path).unwrap(), expected, "{call:?}");
            assert_eq!(count(folder.path()), 1, "{call:?}");
            if let Err(error) = result {
                assert_eq!(error.to_string(), format!("cannot write '{}': {}", path.display(), io::Error::from(kind)));
            }
        }
    }
}

#[test]
fn a_kill_between_any_two_calls_leaves_a_whole_file_and_the_next_write_cleans_up() {
    for old in [None, Some(&b"the old contents"[..])] {
        for at in 0..=CALLS.len() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("model");
            if let Some(old) = old {
                write_atomically(&path, old).unwrap();
            }
            let (result, _) = with(Plan::Kill(at), || write_atomically(&path, b"new contents"));
            let renamed = at > 3;
            assert_eq!(result.is_ok(), renamed);
            let expected = if renamed { Some(&b"new contents"[..]) } else { old };
            assert_eq!(fs::read(&path).ok().as_deref(), expected, "killed before call {at}");
            assert_eq!(count(folder.path()), usize::from(expected.is_some()) + usize::from((1..=3).contains(&at)));
            write_atomically(&path, b"newest").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"newest");
            assert_eq!(count(folder.path()), 1, "killed before call {at}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_removed_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    drop(create_temporary(folder.path(), &path).unwrap());
    let (result, calls) = with(Plan::Fail(0, ErrorKind::PermissionDenied), || write_atomically(&path, b"new"));
    assert!(result.is_ok() && calls[0] == Call::Remove);
    assert_eq!((fs::read(&path).unwrap(), count(folder.path())), (b"new".to_vec(), 2));
}

#[test]
fn temporary_files_of_running_processes_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let (running, lock) = create_temporary(folder.path(), &path).unwrap();
    write_atomically(&path, b"new").unwrap();
    assert!(running.exists());
    drop(lock);
    write_atomically(&path, b"new").unwrap();
    assert!(!running.exists());
}

#[test]
fn temporary_files_of_other_targets_are_removed_after_an_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("model"), folder.path().join("other"));
    let (leftover, file) = create_temporary(folder.path(), &other).unwrap();
    drop(file);
    let foreign = [format!("{PREFIX}notes"), format!("notes{SUFFIX}"), format!("{PREFIX}folder{SUFFIX}")];
    File::create(folder.path().join(&foreign[0])).unwrap();
    File::create(folder.path().join(&foreign[1])).unwrap();
    fs::create_dir(folder.path().join(&foreign[2])).unwrap();
    write_atomically(&path, b"new").unwrap();
    assert!(leftover.exists());
    for name in fs::read_dir(folder.path()).unwrap() {
        let old = SystemTime::now() - Duration::from_secs(2 * 3600);
        File::open(name.unwrap().path()).unwrap().set_modified(old).unwrap();
    }
    write_atomically(&path, b"new").unwrap();
    assert!(!leftover.exists());
    assert!(foreign.iter().all(|name| folder.path().join(name).exists()));
}

#[test]
fn only_regular_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let error = write_atomically(folder.path(), b"x").unwrap_err();
    assert!(error.to_string().ends_with("it exists and is not a regular file"), "{error}");
    let path = folder.path().join("missing/model");
    let error = write_atomically(&path, b"x").unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write '{}': No such file", path.display())), "{error}");
    assert!(!error.contains(PREFIX), "{error}");
}

/// No user, not even root, can create a file in a folder that the kernel provides, such as `/proc/self`.
#[cfg(target_os = "linux")]
#[test]
fn the_error_of_a_folder_that_is_not_writable_names_the_file() {
    let path = Path::new("/proc/self/model");
    let text = write_atomically(path, b"x").unwrap_err().to_string();
    assert!(text.starts_with("cannot write '/proc/self/model': ") && text.ends_with(')'), "{text}");
    assert!(!text.contains(PREFIX), "{text}");
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_permissions_equal_a_new_file() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("model"), folder.path().join("latest"));
    write_atomically(&path, b"old").unwrap();
    symlink(&path, &link).unwrap();
    write_atomically(&link, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let plain = folder.path().join("plain");
    fs::write(&plain, b"").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain));

    // A link to a missing file stays a link.
    let dangling = folder.path().join("dangling");
    symlink("future", &dangling).unwrap();
    write_atomically(&dangling, b"made").unwrap();
    assert_eq!(fs::read(folder.path().join("future")).unwrap(), b"made");
    assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
    // As in Linux, a chain has at most 40 links.
    for number in 0..=40usize {
        let next = number.checked_sub(1).map_or("end".to_owned(), |next| format!("link{next}"));
        symlink(next, folder.path().join(format!("link{number}"))).unwrap();
    }
    assert!(write_atomically(folder.path().join("link40"), b"x").is_err());
    assert!(!folder.path().join("end").exists());
    write_atomically(folder.path().join("link39"), b"made").unwrap();
    assert_eq!(fs::read(folder.path().join("end")).unwrap(), b"made");
    // A link that points to itself is an error.
    let circle = folder.path().join("circle");
    symlink("circle", &circle).unwrap();
    let text = write_atomically(&circle, b"x").unwrap_err().to_string();
    assert!(text.contains("symbolic links"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    for mode in [0o600, 0o640, 0o444] {
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        fs::remove_file(&path).unwrap();
    }
}
