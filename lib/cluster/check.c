/* check.c - the scalars of a section, read and checked
 *
 * A row of the section's table has the type and range of a key and the place
 * of its value.  So `port = 80` in [transport] is refused with "expected 1024
 * to 65535", and no code is about ports.
 */
#include "cluster/check.h"
#include "cluster/file.h"
#include "cluster/findings.h"
#include "cluster/reader.h"
#include "cluster/sections.h"
#include "cluster/value.h"

#include <stdbool.h>

bool dtn_file_check_scalars(struct dtn_file_check *check,
                            const struct dtn_section *section, void *base)
{
    int before = check->findings->nerrors;
    char why[DTN_WHY_SIZE], title[DTN_TITLE_SIZE];
    const struct dtn_entry *entry;

    for (const struct dtn_key *key = section->kind->keys; key->name; key++) {
        entry = dtn_section_get(check->doc, section, key->name);
        if (!entry && key->required)
            dtn_finding(check->findings, section->line, "%s has no \"%s\"; "
                        "expected %s", dtn_section_title(section, title),
                        key->name, key->required);
        else if (entry && !dtn_value_parse(key, entry->value, base, why))
            dtn_finding(check->findings, entry->line, "%s: %s", key->name, why);
    }
    return check->findings->nerrors == before;
}

void dtn_file_check_values(const struct dtn_document *doc,
                           struct dtn_findings *findings)
{
    char why[DTN_WHY_SIZE], value[DTN_ITEM_SIZE];

    for (int i = 0; i < doc->nsections; i++) {
        const struct dtn_section *section = &doc->sections[i];
        const struct dtn_key *key = section->kind->keys;

        for (; key->name; key++) {
            const struct dtn_entry *entry = dtn_section_get(doc, section,
                                                            key->name);
            struct dtn_key alone = *key;

            alone.offset = 0;
            if (entry && !dtn_value_parse(&alone, entry->value, value, why))
                dtn_finding(findings, entry->line, "%s: %s", key->name, why);
        }
    }
}
