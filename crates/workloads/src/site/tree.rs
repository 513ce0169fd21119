//! The site: made from a seed, or a directory of the user's; and the list of its pages that every contestant reads
//! from.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fingerpost_sys::sum::checksum;

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its path below the site, names with slashes between.
    pub path: Vec<u8>,
    /// Its length in bytes.
    pub size: u64,
    /// What [`checksum`] makes of its content.
    pub sum: u64,
}

/// What a site is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Pages.
    pub pages: usize,
    /// Folders on the way to a page.
    pub depth: usize,
    /// Pages in one folder.
    pub per_folder: usize,
    /// The size of every page; nothing for sizes as in the web.
    pub size: Option<u64>,
    /// Seed of names and sizes.
    pub seed: u64,
}

impl Plan {
    /// A structured site as the source's test had: several levels of nested folders, some dozens of pages in each.
    pub fn site(pages: usize, seed: u64) -> Plan {
        Plan {
            pages,
            depth: 4,
            per_folder: 25,
            size: None,
            seed,
        }
    }
}

/// The median of the pages' sizes, and the standard deviation of their logarithm. The body of the distribution of files
/// on web servers is log-normal (Barford and Crovella, “Generating representative Web workloads”, 1998); servers of the
/// source's years had a median of some kilobytes and a mean of some more (Arlitt and Williamson, “Web server workload
/// characterization”, 1996). The mean is 6.3 KB.
const MEDIAN: f64 = 3000.0;
const SIGMA: f64 = 1.22;
const SMALLEST: f64 = 64.0;
const LARGEST: f64 = 1_048_576.0;
/// Folders in one folder.
const FAN: usize = 6;

/// Makes a site in a directory, and tells its pages.
pub fn generate(dir: &Path, plan: &Plan) -> io::Result<Vec<Page>> {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut pages = Vec::with_capacity(plan.pages);
    let mut content = Vec::new();
    for number in 0..plan.pages {
        let folder = folder(number / plan.per_folder.max(1), plan.depth);
        if number.is_multiple_of(plan.per_folder.max(1)) {
            fs::create_dir_all(dir.join(&folder))?;
        }
        let path = format!("{folder}page{number:05}.html");
        let size = plan.size.unwrap_or_else(|| web_like(&mut random));
        fill(&mut content, size as usize, &mut random);
        fs::write(dir.join(&path), &content)?;
        pages.push(Page {
            path: path.into_bytes(),
            size,
            sum: checksum(&content),
        });
    }
    Ok(pages)
}

/// The n-th folder at a depth: its number in the base [`FAN`], a digit a level.
fn folder(number: usize, depth: usize) -> String {
    let mut rest = number;
    (0..depth).fold(String::new(), |path, level| {
        let digit = if level + 1 == depth { rest } else { rest % FAN };
        rest /= FAN;
        // The last level takes what is left, so that there are as many folders as are wanted at any depth.
        path + &format!("section{digit}/")
    })
}

fn web_like(random: &mut fastrand::Rng) -> u64 {
    // Box and Muller.
    let (u, v) = (1.0 - random.f64(), random.f64());
    let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
    (MEDIAN * (SIGMA * normal).exp()).clamp(SMALLEST, LARGEST) as u64
}

/// Text that differs from page to page, quickly.
fn fill(content: &mut Vec<u8>, size: usize, random: &mut fastrand::Rng) {
    content.clear();
    while content.len() < size {
        let word = random.u64(..);
        content.extend(word.to_le_bytes().map(|b| b'a' + b % 26));
    }
    content.truncate(size);
}

/// The pages of a directory of the user's. Links and special files are no pages.
pub fn survey(dir: &Path) -> io::Result<Vec<Page>> {
    let mut pages = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                let content = fs::read(entry.path())?;
                let path = entry
                    .path()
                    .strip_prefix(dir)
                    .map_err(io::Error::other)?
                    .as_os_str()
                    .as_bytes()
                    .to_vec();
                pages.push(Page {
                    path,
                    size: content.len() as u64,
                    sum: checksum(&content),
                });
            }
        }
    }
    // The order of a directory is the file system's; the same seed must give the same list everywhere.
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

/// Writes the list for readers: size, sum, and path of a page, a zero byte after each page.
pub fn write_list(pages: &[Page], file: &Path) -> io::Result<()> {
    let mut text = Vec::new();
    for page in pages {
        text.extend(format!("{} {} ", page.size, page.sum).into_bytes());
        text.extend_from_slice(&page.path);
        text.push(0);
    }
    fs::write(file, text)
}

/// Reads the list.
pub fn read_list(file: &Path) -> io::Result<Vec<Page>> {
    let text = fs::read(file)?;
    let bad = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the list of pages is not well-formed",
        )
    };
    let page = |line: &[u8]| -> Option<Page> {
        let mut parts = line.splitn(3, |&b| b == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        let (size, sum) = (number()?, number()?);
        Some(Page {
            size,
            sum,
            path: parts.next()?.to_vec(),
        })
    };
    text.split(|&b| b == 0)
        .filter(|line| !line.is_empty())
        .map(|line| page(line).ok_or_else(bad))
        .collect()
}

/// Bytes that a directory tree takes on disk: the blocks of its files and directories.
pub fn disk_bytes(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::symlink_metadata(path)?;
    let mut bytes = meta.blocks() * 512;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += disk_bytes(&entry?.path())?;
        }
    }
    Ok(bytes)
}

/// A page's file.
pub fn file_of(dir: &Path, page: &Page) -> std::path::PathBuf {
    dir.join(OsStr::from_bytes(&page.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_site_and_the_list_says_what_is_there() {
        let base = tempfile::tempdir().unwrap();
        let plan = Plan::site(120, 7);
        let (a, b) = (base.path().join("a"), base.path().join("b"));
        let pages = generate(&a, &plan).unwrap();
        assert_eq!(generate(&b, &plan).unwrap(), pages);
        assert_ne!(
            generate(&base.path().join("c"), &Plan { seed: 8, ..plan }).unwrap(),
            pages
        );
        assert_eq!(survey(&a).unwrap(), {
            let mut p = pages.clone();
            p.sort_by(|x, y| x.path.cmp(&y.path));
            p
        });
        assert!(
            pages
                .iter()
                .all(|p| p.path.iter().filter(|&&c| c == b'/').count() == 4)
        );
        let list = base.path().join("list");
        write_list(&pages, &list).unwrap();
        assert_eq!(read_list(&list).unwrap(), pages);
        assert!(disk_bytes(&a).unwrap() >= pages.iter().map(|p| p.size).sum());
    }

    #[test]
    fn sizes_are_as_in_the_web() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut sizes: Vec<u64> = (0..20_000).map(|_| web_like(&mut random)).collect();
        sizes.sort();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        assert!(
            (2800..3200).contains(&sizes[10_000]) && (5800.0..7000.0).contains(&mean),
            "{} {mean}",
            sizes[10_000]
        );
    }
}
