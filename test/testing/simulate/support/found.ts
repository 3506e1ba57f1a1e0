// Scripts that once broke a promise, exactly as they were found. If the runtime now writes its entries in a different
// order, the faults strike elsewhere and the script is an ordinary conversation. A script without `isNew` was found
// when the default app had no tools at pages, no tool that takes minutes, and no language that only a model can
// interpret.

export const found: readonly {
  readonly why: string;
  readonly json: string;
  readonly isNew?: true;
}[] = [
  {
    // When the client had to stop, it reported that it had played nothing of the second item, and the first item
    // counted as played.
    why: 'P4: a notice with another reply behind it, over which somebody says "mm-hm"',
    json: '{"seed":786,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use research and watching, request 0","calls":["research","watching"]},{"at":6145,"do":"notify","text":"News number 6","priority":"urgent"}],"strikes":[{"point":"line.refuses","occurrence":1},{"point":"crash.afterAppend","occurrence":30},{"point":"crash.afterAppend","occurrence":44},{"point":"user.bargesIn","occurrence":3},{"point":"model.slow","occurrence":5},{"point":"journal.slow","occurrence":52},{"point":"user.bargesIn","occurrence":7}]}',
  },
  {
    // A fault in the checker: the floor was taken and released at the same moment.
    why: 'P5: a late "mm-hm" while the line is lost',
    json: '{"seed":45302,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use booking, request 0","calls":["booking"]},{"at":2776,"do":"say","words":"Please use time, request 6","calls":["time"]},{"at":15734,"do":"say","words":"Please use time and watching, request 2","calls":["time","watching"]},{"at":20310,"do":"drop"}],"strikes":[{"point":"model.silent","occurrence":1},{"point":"tool.slow","occurrence":1},{"point":"crash.beforeAppend","occurrence":26},{"point":"client.reloads","occurrence":1},{"point":"crash.beforeAppend","occurrence":45},{"point":"user.bargesIn","occurrence":3},{"point":"line.drops","occurrence":8},{"point":"journal.fails","occurrence":58},{"point":"words.late","occurrence":4},{"point":"crash.afterAppend","occurrence":89},{"point":"user.bargesIn","occurrence":8},{"point":"journal.slow","occurrence":90},{"point":"line.slow","occurrence":14},{"point":"journal.slow","occurrence":96}]}',
  },
  {
    // The user's words were being written to the journal when the connection was lost.
    why: 'LIVE: a model that goes on is told what it has heard itself',
    json: '{"seed":1590,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use planning, request 0","calls":["planning"]},{"at":4703,"do":"say","words":"Please use planning, request 3","calls":["planning"]}],"strikes":[{"point":"crash.beforeAppend","occurrence":51},{"point":"user.bargesIn","occurrence":2},{"point":"line.drops","occurrence":7},{"point":"journal.slow","occurrence":73}]}',
  },
  {
    // In its first turn, the resumed process reported earlier ends after later events.
    why: 'P2: a question is withdrawn, the process dies, and the next question is put first',
    json: '{"seed":118119,"session":"text","steps":[{"at":0,"do":"say","words":"Please use planning, request 0","calls":["planning"]},{"at":13211,"do":"leave"},{"at":36726,"do":"cancel","nth":1}],"strikes":[{"point":"journal.slow","occurrence":3},{"point":"user.bargesIn","occurrence":1},{"point":"journal.fails","occurrence":26},{"point":"journal.fails","occurrence":39},{"point":"user.digresses","occurrence":3},{"point":"model.fails","occurrence":9},{"point":"crash.afterAppend","occurrence":63},{"point":"crash.beforeAppend","occurrence":65}]}',
  },
  {
    // A fault in the simulated user: the user left at the last moment and did not repeat the request.
    why: 'WORK: everything that was asked for went down with a process or a connection',
    json: '{"seed":21306,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use watching, request 0","calls":["watching"]},{"at":785,"do":"message","nth":1,"text":"Remark 7","mode":"queue"},{"at":9324,"do":"notify","text":"News number 4","priority":"urgent"},{"at":9331,"do":"type","words":"Please use shopping, request 5","calls":["shopping"]},{"at":19512,"do":"say","words":"Please use research, request 3","calls":["research"]},{"at":24602,"do":"dismiss","nth":0},{"at":27659,"do":"type","words":"Please use time and watching, request 2","calls":["time","watching"]},{"at":37428,"do":"say","words":"how are you, 6?","calls":[]}],"strikes":[{"point":"crash.beforeAppend","occurrence":7},{"point":"line.drops","occurrence":3},{"point":"line.slow","occurrence":3},{"point":"journal.slow","occurrence":36},{"point":"model.slow","occurrence":2},{"point":"line.expires","occurrence":5},{"point":"crash.afterAppend","occurrence":48},{"point":"user.bargesIn","occurrence":5},{"point":"line.drops","occurrence":6},{"point":"crash.beforeAppend","occurrence":74},{"point":"user.bargesIn","occurrence":8},{"point":"journal.slow","occurrence":91},{"point":"user.bargesIn","occurrence":10},{"point":"line.drops","occurrence":12},{"point":"journal.slow","occurrence":137},{"point":"line.refuses","occurrence":7},{"point":"journal.slow","occurrence":149},{"point":"user.bargesIn","occurrence":14},{"point":"model.fails","occurrence":13},{"point":"tool.fails","occurrence":4},{"point":"crash.afterAppend","occurrence":172},{"point":"journal.slow","occurrence":177},{"point":"client.reloads","occurrence":10},{"point":"client.leaves","occurrence":12},{"point":"client.reloads","occurrence":12},{"point":"journal.slow","occurrence":218},{"point":"journal.slow","occurrence":225},{"point":"model.fails","occurrence":24},{"point":"journal.slow","occurrence":232},{"point":"journal.fails","occurrence":234},{"point":"model.fails","occurrence":31},{"point":"line.slow","occurrence":20},{"point":"client.leaves","occurrence":22}]}',
  },
  {
    // A fault in the simulated model: while a session was moving to a new connection, the model on the old connection
    // had the empty memory of the new one.
    why: 'P4: an urgent notice is told while a connection expires',
    json: '{"seed":2418,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use shopping and watching, request 0","calls":["shopping","watching"]}],"strikes":[{"point":"line.refuses","occurrence":1},{"point":"journal.fails","occurrence":6},{"point":"user.bargesIn","occurrence":4},{"point":"line.drops","occurrence":7},{"point":"user.bargesIn","occurrence":7},{"point":"crash.afterAppend","occurrence":90},{"point":"user.bargesIn","occurrence":14},{"point":"line.expires","occurrence":14}]}',
  },
  {
    // The plan of the question had ended when a channel reported that the question was read.
    why: 'P6: a question that was read in a channel is asked again',
    json: '{"seed":23,"session":"text","steps":[{"at":19279,"do":"leave"}],"strikes":[]}',
    isNew: true,
  },
  {
    // A fault in the simulated pages: a page that had reloaded carried out the call that the page before had claimed. The
    // session then kept the call for the page that had left.
    why: 'P6: a page reloads while its claim is being written',
    json: '{"seed":1245,"session":"text","steps":[{"at":0,"do":"say","words":"Please use watching, request 0","calls":["watching"]},{"at":2190,"do":"type","words":"Please use time, request 5","calls":["time"]},{"at":6578,"do":"type","words":"Please use watching and booking, request 9","calls":["watching","booking"]},{"at":9370,"do":"say","words":"Please use shopping, request 2","calls":["shopping"]}],"strikes":[{"point":"crash.afterAppend","occurrence":7},{"point":"model.fails","occurrence":1},{"point":"journal.slow","occurrence":32},{"point":"crash.afterAppend","occurrence":37},{"point":"lead.empty","occurrence":3},{"point":"user.bargesIn","occurrence":1},{"point":"client.reloads","occurrence":3},{"point":"journal.slow","occurrence":71},{"point":"crash.beforeAppend","occurrence":110},{"point":"journal.slow","occurrence":112},{"point":"page.reloads","occurrence":2}]}',
    isNew: true,
  },
  {
    // A fault in the checker: with channels, a question that waits for its turn is shown as pending.
    why: 'LIVE: several questions wait for their turn and for a user who does not answer',
    json: '{"seed":2485,"session":"text","steps":[{"at":0,"do":"say","words":"Please use watching, request 0","calls":["watching"]},{"at":16327,"do":"read","nth":0},{"at":25931,"do":"say","words":"Please use research and shopping, request 2","calls":["research","shopping"]},{"at":31668,"do":"say","words":"Please use time and shopping, request 3","calls":["time","shopping"]},{"at":33199,"do":"crash"}],"strikes":[{"point":"client.leaves","occurrence":1},{"point":"model.slow","occurrence":3},{"point":"journal.slow","occurrence":86},{"point":"crash.beforeAppend","occurrence":98},{"point":"crash.afterAppend","occurrence":148}]}',
    isNew: true,
  },
];
