//! A picture of few colours as PNG: a million cells as elements of a page would be a hundred megabytes.
//!
//! The format's parts that this takes (ISO/IEC 15948): one byte a pixel into a palette, no filter, one compressed
//! stream.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The bytes of a PNG file: `pixels` are numbers of the palette, line by line. Nothing for a picture without pixels.
pub fn indexed(width: usize, pixels: &[u8], palette: &[[u8; 3]]) -> Option<Vec<u8>> {
    let height = pixels
        .len()
        .checked_div(width)
        .filter(|height| *height > 0)?;
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::new(9));
    for line in pixels.chunks_exact(width) {
        stream
            .write_all(&[0])
            .and_then(|()| stream.write_all(line))
            .ok()?;
    }
    let mut head = Vec::with_capacity(13);
    head.extend_from_slice(&u32::try_from(width).ok()?.to_be_bytes());
    head.extend_from_slice(&u32::try_from(height).ok()?.to_be_bytes());
    // Eight bits, a palette, and the one compression, filtering and order that there are.
    head.extend_from_slice(&[8, 3, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, b"IHDR", &head);
    chunk(&mut file, b"PLTE", palette.as_flattened());
    chunk(&mut file, b"IDAT", &stream.finish().ok()?);
    chunk(&mut file, b"IEND", &[]);
    Some(file)
}

fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], content: &[u8]) {
    file.extend_from_slice(&(content.len() as u32).to_be_bytes());
    let mut sum = flate2::Crc::new();
    sum.update(kind);
    sum.update(content);
    file.extend_from_slice(kind);
    file.extend_from_slice(content);
    file.extend_from_slice(&sum.sum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_file_has_the_formats_chunks_and_the_pixels() {
        let file = indexed(2, &[0, 1, 1, 0, 1, 1], &[[255, 255, 255], [1, 2, 3]]).unwrap();
        assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
        // The specification's own IEND.
        assert_eq!(
            &file[file.len() - 12..],
            [0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82]
        );
        assert_eq!(&file[16..24], [0, 0, 0, 2, 0, 0, 0, 3]);
        let at = file.windows(4).position(|w| w == b"IDAT").unwrap();
        let length = u32::from_be_bytes(file[at - 4..at].try_into().unwrap()) as usize;
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&file[at + 4..at + 4 + length])
            .read_to_end(&mut lines)
            .unwrap();
        assert_eq!(lines, [0, 0, 1, 0, 1, 0, 0, 1, 1]);
        assert_eq!((indexed(0, &[], &[]), indexed(3, &[1], &[])), (None, None));
    }
}
