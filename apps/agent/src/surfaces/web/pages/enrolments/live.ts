import { livePartial } from "@devplat/web-kit";
import { cardId, enrolmentCard, type CardPlace, type EnrolmentView } from "./card.ts";
import { ENROLMENT_LIST_ID, enrolmentList } from "./enrolments-page.ts";
import { SETUP_END_ID, setupEnd } from "./setup-page.ts";

/** The parts of the enrolments' pages that change, for the live stream. */
export async function enrolmentPartials(views: readonly EnrolmentView[]): Promise<string> {
  const list = livePartial(ENROLMENT_LIST_ID, enrolmentList(views.map(({ enrolment }) => enrolment)));
  return (await Promise.all([list, ...cards(views, "page")])).join("");
}

/** The parts of the wizard that change. */
export async function setupPartials(views: readonly EnrolmentView[]): Promise<string> {
  const own = views.filter(({ enrolment }) => enrolment.interactive);
  return (await Promise.all([...cards(own, "setup"), livePartial(SETUP_END_ID, setupEnd(own))])).join("");
}

function cards(views: readonly EnrolmentView[], place: CardPlace): Promise<string>[] {
  return views.map((view) =>
    livePartial(cardId(view.enrolment.key, place), enrolmentCard(view, place), "outerMorph"),
  );
}
