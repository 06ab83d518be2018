use toolwarden_model::document::LocatedValue;

use super::super::keys::{MISUSE, NEVER};
use super::SettingsReader;

use toolwarden_live_guard::MisuseRules;

impl SettingsReader<'_> {
    /// Reads when the behaviour of a principal raises an alert.
    pub(super) fn misuse(&mut self, at: &LocatedValue<'_>) -> MisuseRules {
        let section = self.section(at, &MISUSE);
        let mut rules = MisuseRules::default();
        let thresholds = [
            ("escalations", &mut rules.escalations),
            ("foreign_sessions", &mut rules.foreign_sessions),
            ("denials", &mut rules.denials),
            ("new_groups_after", &mut rules.new_groups_after),
        ];
        for (key, threshold) in thresholds {
            let Some(at) = section.said(key) else {
                continue;
            };
            let is_never = NEVER.iter().any(|(word, ())| at.value == *word);
            let count = if is_never {
                Some(0)
            } else {
                let count = self.count(at);
                count.map(|it| usize::try_from(it.get()).unwrap_or(usize::MAX))
            };
            *threshold = count.unwrap_or(*threshold);
        }
        if let Some(at) = section.said("window") {
            rules.window = self.reader.duration(at).unwrap_or(rules.window);
        }
        if let Some(at) = section.said("every") {
            rules.alert_interval = self.reader.duration(at).unwrap_or(rules.alert_interval);
        }
        rules
    }
}
