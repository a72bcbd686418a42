//! The memory that is available to the process.
//!
//! An operating system may promise memory that it does not have, and kill the process when the process uses the memory. So large requests
//! are first compared with the available memory of the machine and of the process's control groups (Linux's limits for groups of
//! processes).

use std::fs::read_to_string;

/// The error of a request for more memory than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationError;

/// Returns the size of `len` elements in bytes, or an error if the size exceeds half of `isize::MAX`.
pub(crate) fn bytes_of<T>(len: usize) -> Result<usize, AllocationError> {
    len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize / 2).ok_or(AllocationError)
}

/// Returns the available memory in bytes, or `None` if the system does not report it (only Linux does). It is the minimum of `MemAvailable`
/// and the amounts that the control groups still allow.
pub(crate) fn available_bytes() -> Option<u64> {
    let read = |path: &str| read_to_string(path).ok();
    let machine = 1024 * parse_field(&read("/proc/meminfo")?, "MemAvailable:")?;
    Some(group_bytes_left(read).map_or(machine, |groups| groups.min(machine)))
}

/// Returns the number that follows `name` in the first line of `text` that begins with `name`, or `None` if there is none.
fn parse_field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Returns how many more bytes the control groups (version 2 or 1) of this process and their ancestors allow: the minimum over all groups.
/// Returns `None` if no group has a limit, or if the system does not list the groups.
fn group_bytes_left(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in read("/proc/self/cgroup")?.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, used, cache) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ")
        } else if controllers.split(',').any(|controller| controller == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
        } else {
            continue;
        };
        let number = |group: &str, file: &str| -> Option<u64> { read(&format!("{group}/{file}"))?.trim().parse().ok() };
        let left = |group: &str| {
            // The system reclaims inactive file cache when memory is needed, so this cache does not count as used memory.
            let reclaimable =
                read(&format!("{group}/memory.stat")).and_then(|text| parse_field(&text, cache)).unwrap_or(0);
            let used = number(group, used)?.saturating_sub(reclaimable);
            Some(number(group, limit)?.saturating_sub(used))
        };
        let mut group = format!("{root}{}", path.trim_end_matches('/'));
        while group.len() >= root.len() {
            least = [least, left(&group)].into_iter().flatten().min();
            let Some(parent) = group.rfind('/') else { break };
            group.truncate(parent);
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn left(files: &[(&str, &str)]) -> Option<u64> {
        let files: HashMap<&str, &str> = files.iter().copied().collect();
        group_bytes_left(|path| files.get(path).map(|text| (*text).to_owned()))
    }

    #[test]
    fn cached_files_count_as_available() {
        let files = [
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "1000\n"),
            ("/sys/fs/cgroup/memory.current", "900\n"),
            ("/sys/fs/cgroup/memory.stat", "anon 100\ninactive_file 700\nactive_file 100\n"),
        ];
        assert_eq!(left(&files), Some(800));
        assert_eq!(left(&files[..3]), Some(100));
        assert_eq!(left(&[("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/memory.max", "max\n")]), None);
    }

    #[test]
    fn every_containing_group_counts() {
        let files = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/memory.max", "500\n"),
            ("/sys/fs/cgroup/a/memory.current", "200\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "100\n"),
        ];
        assert_eq!(left(&files), Some(300));
        let files = [
            ("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/job\n1:name=systemd:/y\n"),
            ("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "700\n"),
            ("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "650\n"),
            ("/sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 50\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"),
        ];
        assert_eq!(left(&files), Some(100));
    }

    #[test]
    fn sizes_that_overflow_are_errors() {
        assert_eq!(bytes_of::<f64>(usize::MAX / 4), Err(AllocationError));
        assert_eq!(bytes_of::<f64>(5), Ok(40));
    }
}
