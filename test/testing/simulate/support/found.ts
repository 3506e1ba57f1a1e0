// Scripts that broke a promise once. They are kept as they were found; where the runtime takes its
// entries in another order today, their strikes fall elsewhere, and they are conversations like any other.

export const found: readonly { readonly why: string; readonly json: string }[] = [
  {
    // The client told to stop reported that of the second item it had played nothing, and the first
    // counted as played by that.
    why: 'P4: a notice with another reply behind it, over which somebody says "mm-hm"',
    json: '{"seed":786,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use research and watching, request 0","calls":["research","watching"]},{"at":6145,"do":"notify","text":"News number 6","priority":"urgent"}],"strikes":[{"point":"line.refuses","occurrence":1},{"point":"crash.afterAppend","occurrence":30},{"point":"crash.afterAppend","occurrence":44},{"point":"user.bargesIn","occurrence":3},{"point":"model.slow","occurrence":5},{"point":"journal.slow","occurrence":52},{"point":"user.bargesIn","occurrence":7}]}',
  },
  {
    // The checker was at fault: the floor was taken and given back at the same instant.
    why: 'P5: a late "mm-hm" while the line is lost',
    json: '{"seed":45302,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use booking, request 0","calls":["booking"]},{"at":2776,"do":"say","words":"Please use time, request 6","calls":["time"]},{"at":15734,"do":"say","words":"Please use time and watching, request 2","calls":["time","watching"]},{"at":20310,"do":"drop"}],"strikes":[{"point":"model.silent","occurrence":1},{"point":"tool.slow","occurrence":1},{"point":"crash.beforeAppend","occurrence":26},{"point":"client.reloads","occurrence":1},{"point":"crash.beforeAppend","occurrence":45},{"point":"user.bargesIn","occurrence":3},{"point":"line.drops","occurrence":8},{"point":"journal.fails","occurrence":58},{"point":"words.late","occurrence":4},{"point":"crash.afterAppend","occurrence":89},{"point":"user.bargesIn","occurrence":8},{"point":"journal.slow","occurrence":90},{"point":"line.slow","occurrence":14},{"point":"journal.slow","occurrence":96}]}',
  },
  {
    // The user's words were on their way to the journal when the line was lost.
    why: 'LIVE: a model that goes on is told what it has heard itself',
    json: '{"seed":1590,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use planning, request 0","calls":["planning"]},{"at":4703,"do":"say","words":"Please use planning, request 3","calls":["planning"]}],"strikes":[{"point":"crash.beforeAppend","occurrence":51},{"point":"user.bargesIn","occurrence":2},{"point":"line.drops","occurrence":7},{"point":"journal.slow","occurrence":73}]}',
  },
  {
    // What was over was told after what had happened to the process that went on, in its first turn.
    why: 'P2: a question is withdrawn, the process dies, and the next question is put first',
    json: '{"seed":118119,"session":"text","steps":[{"at":0,"do":"say","words":"Please use planning, request 0","calls":["planning"]},{"at":13211,"do":"leave"},{"at":36726,"do":"cancel","nth":1}],"strikes":[{"point":"journal.slow","occurrence":3},{"point":"user.bargesIn","occurrence":1},{"point":"journal.fails","occurrence":26},{"point":"journal.fails","occurrence":39},{"point":"user.digresses","occurrence":3},{"point":"model.fails","occurrence":9},{"point":"crash.afterAppend","occurrence":63},{"point":"crash.beforeAppend","occurrence":65}]}',
  },
];
