// The demo's subagents, each under the name of the lead agent's tool that starts it.

import { menuEditor } from './menu-editor.ts';
import { refundClerk } from './refund-clerk.ts';
import { reportGenerator } from './report-generator.ts';
import { rideBooker } from './ride-booker.ts';
import { tableBooker } from './table-booker.ts';
import type { Workshop } from './workshop.ts';

export function subagentsIn(workshop: Workshop, menuFolder?: string) {
  return {
    book_ride: rideBooker(workshop),
    book_table: tableBooker(workshop),
    generate_report: reportGenerator(workshop),
    refund_order: refundClerk(workshop),
    change_menu: menuEditor(menuFolder),
  };
}
