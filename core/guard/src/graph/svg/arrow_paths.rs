//! The vertical positions of rows, and the paths of arrows between them.

use std::collections::BTreeMap;

use super::text::{count, text_height};
use super::{BOX, MARGIN, Picture};
use crate::graph::layout::LayoutPoint;

const GAP: f64 = 26.0;

#[derive(Clone, Copy, PartialEq)]
pub(super) struct SvgRow {
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// One side of a box.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Side {
    frame: usize,
    below: bool,
}

/// An end of an arrow at a box.
struct ArrowEnd {
    /// The position of its next bend.
    toward: f64,
    arrow: usize,
    leaves: bool,
}

impl Picture {
    /// The top and bottom of every row: each row is as high as its highest item.
    pub(super) fn rows(&self) -> Vec<SvgRow> {
        let mut heights = vec![0.0_f64; self.layout.rows];
        let mut raise = |row: usize, height: f64| {
            if let Some(slot) = heights.get_mut(row) {
                *slot = slot.max(height);
            }
        };
        for (frame, spot) in self.frames.iter().zip(&self.layout.boxes) {
            raise(spot.row, BOX.max(text_height(&frame.loop_tools)));
        }
        for (arrow, label) in self.arrows.iter().zip(&self.layout.labels) {
            raise(label.row, text_height(&arrow.tools));
        }
        let mut top = MARGIN;
        let rows = heights.into_iter().map(|height| {
            let row = SvgRow {
                top,
                bottom: top + height,
            };
            top = row.bottom + if height > 0.0 { GAP } else { 0.0 };
            row
        });
        rows.collect()
    }

    fn row_of(&self, frame: usize) -> usize {
        self.layout.boxes.get(frame).map_or(0, |spot| spot.row)
    }

    /// The path of every arrow.
    pub(super) fn paths(&self, rows: &[SvgRow]) -> Vec<String> {
        let ports = self.ports();
        let courses = self.arrows.iter().zip(&self.layout.paths).zip(ports);
        let courses = courses.map(|((arrow, path), (start, end))| {
            let (from, to) = (self.row_of(arrow.from), self.row_of(arrow.to));
            let edge = |frame_row: usize, below: bool| {
                let row = row_at(rows, frame_row);
                let middle = (row.top + row.bottom) / 2.0;
                let half = BOX / 2.0;
                if below {
                    (middle + half, row.bottom)
                } else {
                    (middle - half, row.top)
                }
            };
            let (leave, leave_row) = edge(from, from < to);
            let (arrive, arrive_row) = edge(to, to < from);
            let mut course = format!("M{start:.1} {leave:.1}");
            course.push_str(&straight(leave, leave_row));
            let (mut x, mut y) = (start, leave_row);
            for LayoutPoint { row, x: next } in path {
                let row = row_at(rows, *row);
                let (near, far) = if from < to {
                    (row.top, row.bottom)
                } else {
                    (row.bottom, row.top)
                };
                course.push_str(&curve(x, y, next + MARGIN, near));
                course.push_str(&straight(near, far));
                (x, y) = (next + MARGIN, far);
            }
            course.push_str(&curve(x, y, end, arrive_row));
            course.push_str(&straight(arrive_row, arrive));
            course
        });
        courses.collect()
    }

    /// Where each arrow leaves and reaches its boxes: side by side, ordered by the direction of the arrow.
    fn ports(&self) -> Vec<(f64, f64)> {
        let mut sides: BTreeMap<Side, Vec<ArrowEnd>> = BTreeMap::new();
        for (number, (arrow, path)) in self.arrows.iter().zip(&self.layout.paths).enumerate() {
            let (from, to) = (self.row_of(arrow.from), self.row_of(arrow.to));
            let mut end = |frame, below, spot: Option<&LayoutPoint>, leaves| {
                let end = ArrowEnd {
                    toward: spot.map_or(0.0, |spot| spot.x),
                    arrow: number,
                    leaves,
                };
                sides.entry(Side { frame, below }).or_default().push(end);
            };
            end(arrow.from, from < to, path.first(), true);
            end(arrow.to, to < from, path.last(), false);
        }
        let mut ports = vec![(0.0, 0.0); self.arrows.len()];
        for (Side { frame, .. }, mut ends) in sides {
            ends.sort_by(|a, b| a.toward.total_cmp(&b.toward));
            let middle = self.layout.boxes.get(frame).map_or(0.0, |spot| spot.x) + MARGIN;
            let width = self.frames.get(frame).map_or(0.0, |frame| frame.width);
            let step = width / (count(ends.len()) + 1.0);
            let mut x = middle - width / 2.0;
            for end in ends {
                x += step;
                match ports.get_mut(end.arrow) {
                    Some((start, _)) if end.leaves => *start = x,
                    Some((_, arrival)) => *arrival = x,
                    None => {}
                }
            }
        }
        ports
    }
}

/// An end of zero length would leave the arrow head without a direction.
fn straight(y: f64, to_y: f64) -> String {
    if y == to_y {
        return String::new();
    }
    format!("V{to_y:.1}")
}

fn curve(x: f64, y: f64, to_x: f64, to_y: f64) -> String {
    let middle = (y + to_y) / 2.0;
    format!("C{x:.1} {middle:.1} {to_x:.1} {middle:.1} {to_x:.1} {to_y:.1}")
}

pub(super) fn row_at(rows: &[SvgRow], number: usize) -> SvgRow {
    let beyond = || rows.last().map_or(MARGIN, |row| row.bottom + GAP);
    rows.get(number).copied().unwrap_or_else(|| SvgRow {
        top: beyond(),
        bottom: beyond(),
    })
}
