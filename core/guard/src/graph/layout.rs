//! Places boxes in rows and routes edges between them without overlaps.
//!
//! Boxes are in even rows and the labels of edges in odd ones. An edge that crosses a row takes up space in
//! it like a box does, and bends only in the gaps between rows.

use super::layers::layers;

/// The input of the layout.
#[derive(Debug, Default)]
pub(super) struct LayoutInput {
    pub(super) boxes: Vec<Extent>,
    /// Boxes that belong at the top.
    pub(super) tops: Vec<usize>,
    pub(super) links: Vec<LayoutLink>,
}

/// A link from one box to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayoutLink {
    pub(super) from: usize,
    pub(super) to: usize,
    /// The width of its label.
    pub(super) label: f64,
}

/// The space that an item takes on both sides of its centre line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extent {
    pub(super) left: f64,
    pub(super) right: f64,
}

/// The position of every item; rows are counted from the top.
#[derive(Debug, Default)]
pub(super) struct GraphLayout {
    pub(super) rows: usize,
    pub(super) width: f64,
    pub(super) boxes: Vec<LayoutPoint>,
    /// For each link, the places it passes between its first and its last box, excluding both.
    pub(super) paths: Vec<Vec<LayoutPoint>>,
    /// For each link, the place of its label.
    pub(super) labels: Vec<LayoutPoint>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LayoutPoint {
    pub(super) row: usize,
    pub(super) x: f64,
}

const BEND: Extent = Extent {
    left: 6.0,
    right: 6.0,
};

/// Straight long edges take precedence over centred boxes.
const STRAIGHT: f64 = 8.0;
const LABEL: f64 = 2.0;
const FRAME: f64 = 1.0;

impl LayoutInput {
    pub(super) fn layout(&self) -> GraphLayout {
        let mut arrangement = Arrangement::of(self);
        arrangement.order();
        arrangement.place();
        arrangement.finish(self)
    }
}

/// Boxes first, then labels and bends, each with a number.
#[derive(Default)]
pub(super) struct Arrangement {
    pub(super) items: Vec<LayoutItem>,
    pub(super) rows: Vec<Vec<usize>>,
    /// For each link, the items it passes, without its boxes.
    pub(super) chains: Vec<Vec<usize>>,
    labels: Vec<usize>,
}

#[derive(Default)]
pub(super) struct LayoutItem {
    pub(super) row: usize,
    pub(super) extent: Extent,
    /// How much the item's preferred coordinate counts against those of its neighbours in the row.
    pub(super) weight: f64,
    pub(super) x: f64,
    pub(super) above: Vec<usize>,
    pub(super) below: Vec<usize>,
}

impl Arrangement {
    fn of(sketch: &LayoutInput) -> Self {
        let mut arrangement = Self::default();
        for (extent, layer) in sketch.boxes.iter().zip(layers(sketch)) {
            arrangement.add(2 * layer, *extent, FRAME);
        }
        for link in &sketch.links {
            arrangement.link(link);
        }
        arrangement
    }

    fn add(&mut self, row: usize, extent: Extent, weight: f64) -> usize {
        let number = self.items.len();
        self.items.push(LayoutItem {
            row,
            extent,
            weight,
            ..LayoutItem::default()
        });
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, Vec::new);
        }
        if let Some(items) = self.rows.get_mut(row) {
            items.push(number);
        }
        number
    }

    fn link(&mut self, link: &LayoutLink) {
        let down = self.row(link.from) < self.row(link.to);
        let (upper, lower) = if down {
            (link.from, link.to)
        } else {
            (link.to, link.from)
        };
        let label = Extent {
            left: 4.0,
            right: link.label + 8.0,
        };
        let mut last = upper;
        let mut chain = Vec::new();
        for row in self.row(upper) + 1..self.row(lower) {
            let (extent, weight) = if chain.is_empty() {
                (label, LABEL)
            } else {
                (BEND, STRAIGHT)
            };
            let item = self.add(row, extent, weight);
            self.join(last, item);
            chain.push(item);
            last = item;
        }
        self.join(last, lower);
        self.labels.extend(chain.first());
        if !down {
            chain.reverse();
        }
        self.chains.push(chain);
    }

    fn join(&mut self, upper: usize, lower: usize) {
        if let Some(item) = self.items.get_mut(upper) {
            item.below.push(lower);
        }
        if let Some(item) = self.items.get_mut(lower) {
            item.above.push(upper);
        }
    }

    fn finish(mut self, sketch: &LayoutInput) -> GraphLayout {
        let lefts = self.items.iter().map(|item| item.x - item.extent.left);
        let left = lefts.fold(f64::INFINITY, f64::min);
        for item in &mut self.items {
            item.x -= left;
        }
        let rights = self.items.iter().map(|item| item.x + item.extent.right);
        let width = rights.fold(0.0, f64::max);
        let spot = |number: &usize| LayoutPoint {
            row: self.row(*number),
            x: self.x(*number),
        };
        GraphLayout {
            rows: self.rows.len(),
            width,
            boxes: (0..sketch.boxes.len())
                .map(|number| spot(&number))
                .collect(),
            paths: self
                .chains
                .iter()
                .map(|chain| chain.iter().map(spot).collect())
                .collect(),
            labels: self.labels.iter().map(spot).collect(),
        }
    }

    fn row(&self, number: usize) -> usize {
        self.items.get(number).map_or(0, |item| item.row)
    }

    pub(super) fn x(&self, number: usize) -> f64 {
        self.items.get(number).map_or(0.0, |item| item.x)
    }
}
